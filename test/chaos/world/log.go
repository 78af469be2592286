package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// LogLoss deletes the folder of the bus on every machine, as when a disk is replaced: the log and the
// positions of all listeners are gone. It is not among Nemeses, whose checks compare objects with the log.
func (w *World) LogLoss() Nemesis {
	return Nemesis{Name: "loss of the log", Kills: max(len(w.buses), 1), Inject: func(context.Context, *rand.Rand) (heal, error) {
		units := w.fronts // with the embedded bus
		folders := []string{filepath.Join(w.machines[0].folder, "data", "bus")}
		if len(w.buses) > 0 {
			units, folders = nil, nil
			for _, b := range w.buses {
				units = append(units, b.unit)
				folders = append(folders, filepath.Join(b.machine.folder, "jetstream"))
			}
		}
		for _, u := range units {
			u.kill()
		}
		var all []error
		for _, folder := range folders {
			if _, err := os.Stat(folder); err != nil { // it would be another loss
				all = append(all, err)
			}
			all = append(all, os.RemoveAll(folder))
		}
		return func(context.Context) error { return startAll(units) }, errors.Join(all...)
	}}
}
