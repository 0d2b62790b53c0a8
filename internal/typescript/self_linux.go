package typescript

// self is the running executable, also after its file was replaced.
func self() (string, error) { return "/proc/self/exe", nil }
