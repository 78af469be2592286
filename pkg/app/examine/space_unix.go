//go:build linux || darwin

package examine

import (
	"syscall"
)

// Space returns the free bytes for this process, and all bytes, on the disk of a folder.
func Space(folder string) (free, total int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, 0, false
	}
	size := int64(s.Bsize) //nolint:unconvert // its type depends on the system
	return int64(s.Bavail) * size, int64(s.Blocks) * size, true
}

// mayWrite reports whether this process may create files in a folder.
func mayWrite(folder string) bool {
	const writes = 2 // W_OK
	return syscall.Access(folder, writes) == nil
}
