//go:build !linux

package filestorage_test

// fullWorks needs what only Linux has.
var fullWorks map[string]func(folder string) error
