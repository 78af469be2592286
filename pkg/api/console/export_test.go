package console

// Help is help, for tests.
var Help = help
