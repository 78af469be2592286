//go:build !linux && !darwin

package examine

// Space is not known on this system.
func Space(string) (free, total int64, ok bool) { return 0, 0, false }

// mayWrite is not known on this system: only a write shows it.
func mayWrite(string) bool { return true }
