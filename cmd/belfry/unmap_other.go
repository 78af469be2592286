//go:build !linux

package main

// unmapProgram does nothing: other systems have their own ways.
func unmapProgram() {}
