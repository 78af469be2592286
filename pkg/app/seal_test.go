package app

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
)

func sealKeys(t *testing.T, stores int) []*store.Store {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	opened, err := store.Open(t.Context(), backend, store.Options{Name: config.SealKeyStore, NoEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*store.Store, stores)
	for i := range all { // each has locks of its own, as in another process
		all[i] = opened.WithOptions(func(o *store.Options) { o.Locker = nil })
	}
	return all
}

func TestProcessesThatStartAtOnceHaveTheSameKey(t *testing.T) {
	const processes = 16
	stores := sealKeys(t, processes)
	sealers := make([]*seal.Sealer, processes)
	failed := make([]error, processes)
	var running sync.WaitGroup
	begin := make(chan struct{})
	for i := range processes {
		running.Go(func() {
			<-begin
			sealers[i], failed[i] = command.LoadSealer(t.Context(), stores[i])
		})
	}
	close(begin)
	running.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	for i, s := range sealers {
		text := s.Seal("test", []byte("content"))
		for j, other := range sealers {
			if got, ok := other.Open("test", text); !ok || string(got) != "content" {
				t.Errorf("process %d can't open what process %d has sealed", j, i)
			}
		}
	}
}

func TestABrokenKeyIsReportedAndStays(t *testing.T) {
	keys := sealKeys(t, 1)[0]
	o := object.Object{}
	o.Set(command.SealKeyField, []byte("too short"))
	before, err := keys.Save(t.Context(), o, command.SealKeyUUID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.LoadSealer(t.Context(), keys); !errors.Is(err, errs.Internal) ||
		!strings.Contains(err.Error(), "restore it from a backup") {
		t.Errorf("%v", err)
	}
	after, err := keys.Get(t.Context(), command.SealKeyUUID)
	if err != nil || after.Revision != before.Revision {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestTheKeySurvivesARestartAndIsNotExported(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	text := a.now().Sealer.Seal("test", []byte("content"))
	stored, err := a.Set().Store(config.SealKeyStore).Get(t.Context(), command.SealKeyUUID)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := object.Text(object.Field(stored.Body, command.SealKeyField))
	p.stop(a)
	if got, ok := p.start().now().Sealer.Open("test", text); !ok || string(got) != "content" {
		t.Errorf("after a restart: %q, %v", got, ok)
	}
	exported, err := p.export(p.config, config.SealKeyStore)
	if err != nil || key == "" || !strings.Contains(exported, command.SealKeyUUID) || strings.Contains(exported, key) {
		t.Errorf("%q, %v", exported, err)
	}
	if strings.Contains(p.logged.String(), key) {
		t.Error("the log contains the key")
	}
}
