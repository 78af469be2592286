package memory

import (
	"os"
	"strconv"
	"strings"
)

// Holder is a part of a process that holds memory.
type Holder struct {
	Part string // as metrics name it
	Says string // what it is
	Held int64  // bytes
	Most int64  // that it may hold; 0: what it needs
	Of   string // the part in which its bytes are counted too; "": none
}

// The parts of a process that its runtime and the kernel know.
const (
	PartObjects = "objects"
	PartFree    = "free"
	PartRuntime = "runtime"
	PartProgram = "program"
)

// Whole are the parts whose sum the process takes, as the last collection left them.
func Whole() []Holder {
	u := readUsage()
	return []Holder{
		{Part: PartObjects, Says: "objects in use, those of the following parts included", Held: int64(u.live)},
		{Part: PartFree, Says: "garbage, and memory that is ready for new objects", Held: int64(u.free)},
		{Part: PartRuntime, Says: "stacks, and what the runtime needs for itself", Held: int64(u.other)},
		{Part: PartProgram, Says: "pages of the program and of files, which the kernel can take back",
			Held: programBytes()},
	}
}

// programBytes are the resident pages of files; 0 where the kernel does not say.
func programBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kib, 10, 64) // 0 without the line
	return n << 10
}
