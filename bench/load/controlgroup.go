package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// controlGroup limits the memory of processes, by the kernel's control groups of version 1 or 2.
type controlGroup string // its folder

// newControlGroup makes a group of so many MiB, which only root may do. Swap counts as memory, where the kernel counts
// it.
func newControlGroup(name string, mib int) (controlGroup, error) {
	root, limits := "/sys/fs/cgroup", []string{"memory.max", "memory.swap.max"}
	if _, err := os.Stat(filepath.Join(root, "memory")); err == nil {
		root, limits = filepath.Join(root, "memory"), []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}
	}
	g := controlGroup(filepath.Join(root, fmt.Sprintf("belfry-load-%d-%s-%d", os.Getpid(), name, mib)))
	if err := os.Mkdir(string(g), 0o755); err != nil {
		return "", err
	}
	bytes := strconv.Itoa(mib << 20)
	if err := os.WriteFile(filepath.Join(string(g), limits[0]), []byte(bytes), 0); err != nil {
		return "", err
	}
	swap := bytes // with memory, in version 1
	if limits[1] == "memory.swap.max" {
		swap = "0"
	}
	_ = os.WriteFile(filepath.Join(string(g), limits[1]), []byte(swap), 0) // fails where swap is not counted
	return g, nil
}

// prefix is a command that runs another one in the group.
func (g controlGroup) prefix() []string {
	return []string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(string(g), "cgroup.procs")}
}

// remove removes the group, whose processes have ended.
func (g controlGroup) remove() error { return os.Remove(string(g)) }
