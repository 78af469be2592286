package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram unmaps the pages of the program from this process. The start touches most of them, once, and the kernel
// maps sixteen for each that is touched; a belfry that is idle uses a fifth. They stay in the kernel's cache of files,
// and are mapped again without a read when they are used.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(string(maps), program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // at worst, they stay
	}
}

// mapping is a part of the memory of a process.
type mapping struct{ start, end uintptr }

// unchanged returns the mappings of a file, from the text of /proc/self/smaps, that can't be written and in which no
// page differs from the file: what differs would be lost. A dynamic linker has written its tables into pages that are
// read-only since, and a debugger its breakpoints.
func unchanged(smaps, file string) (found []mapping) {
	var now mapping // the one whose properties follow, if it qualifies
	for line := range strings.Lines(smaps) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case !strings.HasSuffix(name, ":"):
			now = unwritable(name, value, file)
		case name == "Anonymous:" && strings.TrimLeft(value, " ") == "0 kB" && now != mapping{}:
			found = append(found, now)
		}
	}
	return found
}

// unwritable reads the first line of a mapping: its addresses, then permissions, offset, device, inode and path. It
// returns nothing for one of another file, and for one that can be written.
func unwritable(addresses, rest, file string) mapping {
	fields := strings.SplitN(rest, " ", 5)
	if len(fields) < 5 || strings.TrimLeft(fields[4], " ") != file || !strings.HasPrefix(fields[0], "r-") {
		return mapping{}
	}
	from, to, _ := strings.Cut(addresses, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil || start >= end {
		return mapping{}
	}
	return mapping{uintptr(start), uintptr(end)}
}
