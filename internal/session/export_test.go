package session

// StatusError is statusError.
const StatusError = statusError
