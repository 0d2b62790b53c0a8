// Package oracle holds the wire formats of Capstan against the official SDKs of
// their providers. It has tests only, in a module of its own, so that nothing
// else depends on the SDKs; make oracle runs them, and needs the network once.
//
// What a family sends must survive the SDK's own types: decoded into them and
// encoded again it is the same JSON, so there is no member that the SDK does not
// know. And what a family understands of an answer must be what the SDK's client
// and its accumulator understand of the same bytes: text, calls, counts and the
// reason to end.
//
// The SDKs know their own API only. What imitating servers bend is no matter of
// this package, see package openai.
package oracle
