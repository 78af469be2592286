package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestUnwritableMappings(t *testing.T) {
	const maps = "00400000-0269a000 r-xp 00000000 fe:00 10407161                           /srv/a b/belfry\n" +
		"0269a000-04b8d000 r--p 0229a000 fe:00 10407161                           /srv/a b/belfry\n" +
		"04b8d000-04d16000 rw-p 0478d000 fe:00 10407161                           /srv/a b/belfry\n" +
		"05000000-05001000 ---p 00000000 fe:00 10407161                           /srv/a b/belfry\n" +
		"06000000-06001000 r--p 00000000 fe:00 1                                  /srv/a b/belfry2\n" +
		"c000000000-c000400000 rw-p 00000000 00:00 0 \n" +
		"7ffc-bad r-xp 00000000 00:00 0                          [vdso]\n"
	got := unwritable(maps, "/srv/a b/belfry")
	if len(got) != 2 || got[0] != (mapping{0x400000, 0x269a000}) || got[1] != (mapping{0x269a000, 0x4b8d000}) {
		t.Errorf("%x", got)
	}
}

// The pages of this test program are unmapped, and those that it uses mapped again.
func TestTheProgramGoesOnWithItsPagesUnmapped(t *testing.T) {
	before := fileMemory(t)
	unmapProgram()
	after := fileMemory(t)
	if after > before*3/4 {
		t.Errorf("%d KB of files are mapped after it, %d before", after, before)
	}
	if strings.Repeat("a", 3) != "aaa" {
		t.Error("the program is another one")
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
