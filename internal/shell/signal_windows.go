package shell

// signalName is always empty: nothing on Windows ends by a signal.
func signalName(uint32) string { return "" }
