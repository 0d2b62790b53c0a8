package main

// expected are the scenarios that fail, and why they may.
var expected = map[string]string{
	"auth/2025-03-26-oauth-metadata-backcompat": "its metadata names another issuer than the address that it is read from, which RFC 8414 section 3.3 says to refuse",
	"auth/pre-registration":                     "clients registered beforehand are not supported: a server without dynamic registration takes a header",
	"auth/client-credentials-jwt":               "an extension that is not supported: a login is a person's",
	"auth/client-credentials-basic":             "an extension that is not supported: a login is a person's",
	"auth/cross-app-access-complete-flow":       "an extension that is not supported: it takes an identity provider of a company",
}
