package kit

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

const envRole = "BELFRY_TEST_SPAWN"

func TestMain(m *testing.M) {
	if os.Getenv(envRole) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "600")
	if err := Start(cmd); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

// A process ends when its parent is killed, and not before.
func TestNobodyIsLeftBehind(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), envRole+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(parent); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if !runs(pid) {
		t.Error("it ended at once")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	WaitFor(t, "the child has ended as well", func() bool { return !runs(pid) })
}

// runs reports whether a process is there and no zombie: nobody may be there to
// collect it.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	var name string
	var state rune
	_, scanErr := fmt.Sscanf(string(stat), "%d %s %c", &pid, &name, &state)
	return err == nil && scanErr == nil && state != 'Z'
}
