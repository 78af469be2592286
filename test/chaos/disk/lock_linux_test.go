package disk

import (
	"errors"
	"testing"

	"belfry/pkg/app/hold"
	"belfry/test/chaos/faultdisk"
)

// The lock file of a data folder is written without new space: what is free when it is cut off, another file may take.
func TestALockIsTakenOnAFullDisk(t *testing.T) {
	if !withDisks(t) {
		return
	}
	disk, folder := faultdisk.New(), t.TempDir()
	unmount, err := disk.Mount(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	}()
	// Over nothing, over shorter content, over longer.
	for _, doing := range []string{"serve", "schema check", "serve"} {
		l, err := hold.LockData(folder, doing)
		if err != nil {
			t.Fatalf("on a disk that is full from the second time on: %v", err)
		}
		_, err = hold.LockData(folder, "backup")
		if held, ok := errors.AsType[*hold.Held](err); !ok || held.Holder.Doing != doing {
			t.Errorf("while %s holds the folder: %v", doing, err)
		}
		l.Unlock()
		disk.Fill(-4096) // what is cut off is not free for what follows
	}
}
