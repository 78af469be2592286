package kit

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
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

// A process runs on the processors that it is bound to, and the next one on all.
func TestAProcessIsBoundToProcessors(t *testing.T) {
	all, err := Processors()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	for _, c := range []struct {
		given []int
		want  []int
	}{{last, last}, {nil, all}} {
		var out strings.Builder
		cmd := exec.Command("sh", "-c", "grep Cpus_allowed_list /proc/self/status")
		cmd.Stdout = &out
		if err := StartOn(cmd, c.given); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, strings.Fields(out.String())[1]); !slices.Equal(got, c.want) {
			t.Errorf("started on %v it runs on %v, want %v", c.given, got, c.want)
		}
	}
}

// listed expands a list of the kernel, such as 0-3,7.
func listed(t *testing.T, text string) (all []int) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, lastErr := strconv.Atoi(to)
		if err != nil || lastErr != nil {
			t.Fatalf("%q", text)
		}
		for p := first; p <= last; p++ {
			all = append(all, p)
		}
	}
	return all
}
