//go:build !linux

package main

// inMemory is for systems that have no such folder.
func inMemory() (folder string, free uint64) { return "", 0 }
