package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// LogLoss deletes the folder of the bus on every machine, as when a disk is replaced: the log and the
// positions of all listeners are gone. belfry runs meanwhile or, half of the time, does not. It is not among
// Nemeses: whoever injects it must know what is lost. A power cut of the embedded bus after it can take the
// end of the next log back, which is then the last that belfry reports: a check must be between them.
func (w *World) LogLoss() Nemesis {
	return Nemesis{Name: "loss of the log", Kills: max(len(w.buses), 1), Alone: len(w.buses) == 0,
		Inject: func(_ context.Context, r *rand.Rand) (heal, error) {
			units := w.fronts // with the embedded bus
			folders := []string{filepath.Join(w.machines[0].folder, "data", "bus")}
			if len(w.buses) > 0 {
				units, folders = nil, nil
				for _, b := range w.buses {
					units = append(units, b.unit)
					folders = append(folders, filepath.Join(b.machine.folder, "jetstream"))
				}
			}
			if len(w.buses) > 0 && r.IntN(2) == 0 {
				units = append(units, w.belfries()...)
			}
			for _, u := range slices.Backward(units) {
				u.kill()
			}
			var all []error
			for _, folder := range folders {
				if _, err := os.Stat(folder); err != nil { // it would be another loss
					all = append(all, err)
				}
				// A power cut must not bring it back.
				all = append(all, os.RemoveAll(folder), syncFolder(filepath.Dir(folder)))
			}
			return func(context.Context) error { return startAll(units) }, errors.Join(all...)
		}}
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
