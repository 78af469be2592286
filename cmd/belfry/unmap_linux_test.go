package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestOnlyMappingsThatAreAsTheirFileAreUnmapped(t *testing.T) {
	text := func(anonymous string, lines ...string) string {
		var b strings.Builder
		for _, line := range lines {
			fmt.Fprintf(&b, "%s\nSize:               1568 kB\nRss:                 984 kB\nAnonymous:           "+
				"%s\nAnonHugePages:         0 kB\nVmFlags: rd ex mr mw me sd\n", line, anonymous)
		}
		return b.String()
	}
	smaps := text("0 kB",
		"00400000-0269a000 r-xp 00000000 fe:00 10407161                           /srv/a b/belfry",
		"0269a000-04b8d000 r--p 0229a000 fe:00 10407161                           /srv/a b/belfry",
		"04b8d000-04d16000 rw-p 0478d000 fe:00 10407161                           /srv/a b/belfry",
		"05000000-05001000 ---p 00000000 fe:00 10407161                           /srv/a b/belfry",
		"06000000-06001000 r--p 00000000 fe:00 1                                  /srv/a b/belfry2",
		"c000000000-c000400000 rw-p 00000000 00:00 0 ",
		"7ffc0000-7ffc1000 r-xp 00000000 00:00 0                          [vdso]",
	) + text("4 kB", "07000000-07001000 r--p 00000000 fe:00 10407161                           /srv/a b/belfry")
	got := unchanged(smaps, "/srv/a b/belfry")
	if want := []mapping{{0x400000, 0x269a000}, {0x269a000, 0x4b8d000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// The pages of this test program are unmapped, and those that it uses are mapped again.
func TestAProgramRunsOnWithItsPagesUnmapped(t *testing.T) {
	before := fileMemory(t)
	unmapProgram()
	if after := fileMemory(t); after > before*3/4 {
		t.Errorf("%d KB of files are mapped after it, %d before", after, before)
	}
	if home, err := os.UserHomeDir(); err == nil { // by way of what a dynamic linker has linked, where there is one
		_, _ = os.Stat(home)
	}
}

// fileMemory is how many KB of files are mapped and in memory.
func fileMemory(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(text, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
