package main

// expected are the scenarios that fail for a reason that is not a fault to mend
// here, and the reason.
var expected = map[string]string{}
