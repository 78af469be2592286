package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// childDisk has the test program be a process whose disk gets full.
const childDisk, childFolder = "BELFRY_TEST_DISK", "BELFRY_TEST_FOLDER"

func TestMain(m *testing.M) {
	disk, is := disks[os.Getenv(childDisk)]
	if !is {
		os.Exit(m.Run())
	}
	if err := outgrow(os.Getenv(childFolder), disk); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// disk is a disk that is small, until there is more room.
type disk struct{ small, ample func(folder string) error }

var disks = map[string]disk{
	"disk": {
		small: func(folder string) error {
			return errors.Join(
				syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
				syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"),
			)
		},
		ample: func(folder string) error {
			return syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=64m")
		},
	},
	"file size": {
		small: func(string) error {
			signal.Ignore(syscall.SIGXFSZ)
			return fileSize(2 << 20)
		},
		ample: func(string) error { return fileSize(64 << 20) },
	},
}

func fileSize(most uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: 64 << 20})
}

// TestAFullDisk fills the disk of separate processes, which recover
// by themselves once there is space: a small disk that they alone see where they
// may mount one, and else the most that a file may have.
func TestAFullDisk(t *testing.T) {
	for name := range disks {
		alone := name == "disk"
		if alone && os.Getuid() != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childDisk+"="+name, childFolder+"="+t.TempDir())
			if alone {
				cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// outgrow publishes more than a small disk takes, and continues when there is more
// room.
func outgrow(folder string, d disk) error {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	if err := d.small(folder); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	b, err := bus.Open(ctx,
		bus.Options{Server: embedded.New(embedded.Options{Folder: folder, Logger: log}), Logger: log})
	if err != nil {
		return err
	}
	var taken uint64
	publish := func() error {
		subject, payload := fmt.Sprintf("events.0.Store.Saved.Books.%d", taken), []byte(strings.Repeat("x", 100<<10))
		err := b.Publish(ctx, []bus.Event{{ID: fmt.Sprint(taken), Subject: subject, Payload: payload}})
		if err == nil {
			taken++
		}
		return err
	}
	for err = publish(); err == nil; err = publish() {
		if taken > 100 {
			return errors.New("the disk is not full after 10 MB")
		}
	}
	if err := until(func() bool { return errors.Is(b.Ready(ctx), errs.Unavailable) }); err != nil {
		return fmt.Errorf("a full disk is not reported: %w", err)
	}
	if err := d.ample(folder); err != nil {
		return err
	}
	if err := until(func() bool { return b.Ready(ctx) == nil && publish() == nil }); err != nil {
		return fmt.Errorf("there is room again, and the bus takes nothing: %w", err)
	}
	if err := publish(); err != nil {
		return fmt.Errorf("after the bus took something: %w", err)
	}
	s, err := b.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return err
	}
	if n := s.CachedInfo().State.Msgs; n != taken {
		return fmt.Errorf("the log has %d events of the %d that it took", n, taken)
	}
	return b.Close(ctx)
}

func until(right func() bool) error {
	return kit.Await(2*time.Minute, func() error {
		if right() {
			return nil
		}
		return errors.New("it never came about")
	})
}
