package world

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"belfry/test/chaos/faultdisk"
)

// machine is a disk and the processes that keep something on it. They end when its power is cut.
type machine struct {
	name   string
	folder string
	disk   *faultdisk.Disk // nil where it can't be mounted
	units  []*unit
}

// newMachine returns a machine whose folder is on a disk of its own, if that can be mounted; else why not.
func newMachine(t testing.TB, folder, name string) (*machine, error) {
	t.Helper()
	m := &machine{name: name, folder: filepath.Join(folder, name)}
	if err := os.Mkdir(m.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	disk := faultdisk.New()
	unmount, err := disk.Mount(m.folder)
	if err != nil {
		return m, fmt.Errorf("the disk of %s: %w", name, err)
	}
	m.disk = disk
	t.Cleanup(func() {
		disk.Heal() // so that nothing waits for it
		if err := unmount(); err != nil {
			t.Errorf("unmounting %s: %v", m.folder, err)
		}
	})
	return m, nil
}

// kill ends all processes of the machine.
func (m *machine) kill() {
	for _, u := range m.units {
		u.kill()
	}
}

// start starts them again.
func (m *machine) start() error {
	for _, u := range m.units {
		if err := u.start(); err != nil {
			return err
		}
	}
	return nil
}
