package app

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// sealers are those of processes that share a store of keys.
func sealers(t *testing.T, stores []*store.Store) []*seal.Sealer {
	t.Helper()
	var all []*seal.Sealer
	for _, s := range stores {
		one, err := command.LoadSealer(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func opens(s *seal.Sealer, text string) bool {
	content, ok := s.Open("test", text)
	return ok && string(content) == "content"
}

func sealed(s *seal.Sealer) string { return s.Seal("test", []byte("content")) }

// A process seals with a new key only once the others have had the time to read it.
func TestAnAddedKeyIsUsedOnceAllProcessesHaveReadIt(t *testing.T) {
	stores := sealKeys(t, 2)
	processes := sealers(t, stores)
	before := sealed(processes[0])
	if _, err := command.AddSealKey(t.Context(), stores[0], time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := command.ReadSealKeys(t.Context(), stores[0], processes[0]); err != nil {
		t.Fatal(err)
	}
	if !opens(processes[1], sealed(processes[0])) {
		t.Error("a process seals with a key that another may not have read yet")
	}

	// A minute later.
	if _, err := command.AddSealKey(t.Context(), stores[0], time.Now().Add(-2*command.SealKeyDelay),
		time.Hour); err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		if err := command.ReadSealKeys(t.Context(), s, processes[i]); err != nil {
			t.Fatal(err)
		}
	}
	late := sealers(t, stores[:1])[0]
	text := sealed(processes[0])
	for i, s := range append(processes, late) {
		if !opens(s, text) || !opens(s, before) || !opens(s, sealed(late)) {
			t.Errorf("process %d does not open all texts", i)
		}
	}
	for _, k := range storedKeys(t, stores[0])[:1] {
		if one, err := seal.New(k.Key); err != nil || opens(one, text) {
			t.Errorf("the first key is still used: %v", err)
		}
	}
}

func storedKeys(t *testing.T, s *store.Store) (keys []command.StoredKey) {
	t.Helper()
	stored, err := s.Get(t.Context(), command.SealKeyUUID)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(object.Field(stored.Body, command.SealKeysField), &keys); err != nil {
		t.Fatal(err)
	}
	// A belfry of an earlier release reads the first one.
	var first []byte
	if err := json.Unmarshal(object.Field(stored.Body, command.SealKeyField), &first); err != nil ||
		string(first) != string(keys[0].Key) {
		t.Errorf("an earlier release reads another key: %v", err)
	}
	return keys
}

func TestWhatAnEndedKeyHasSealedIsNotOpened(t *testing.T) {
	stores := sealKeys(t, 1)
	s := sealers(t, stores)[0]
	text := sealed(s)
	ago := time.Now().Add(-2 * command.SealKeyDelay)
	if _, err := command.AddSealKey(t.Context(), stores[0], ago, 0); err != nil {
		t.Fatal(err)
	}
	if err := command.ReadSealKeys(t.Context(), stores[0], s); err != nil {
		t.Fatal(err)
	}
	if opens(s, text) || !opens(s, sealed(s)) {
		t.Error("an ended key opens, or the current one does not")
	}
	// It is removed with the next change, and a shorter time holds for all earlier keys.
	if _, err := command.AddSealKey(t.Context(), stores[0], time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	keys, err := command.AddSealKey(t.Context(), stores[0], time.Now(), time.Second)
	if err != nil || len(keys) != 3 || len(storedKeys(t, stores[0])) != 3 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, k := range keys[:2] {
		if k.Until.IsZero() || time.Until(k.Until) > 2*command.SealKeyDelay {
			t.Errorf("an earlier key ends at %s", k.Until)
		}
	}
}

func TestKeysAreBoundedInNumber(t *testing.T) {
	stores := sealKeys(t, 1)
	for n := 2; n <= command.MaxSealKeys; n++ {
		if keys, err := command.AddSealKey(t.Context(), stores[0], time.Now(), time.Hour); err != nil ||
			len(keys) != n {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
	}
	if _, err := command.AddSealKey(t.Context(), stores[0], time.Now(), time.Hour); !errors.Is(err, errs.Exists) ||
		!strings.Contains(err.Error(), "--keep") {
		t.Errorf("%v", err)
	}
	if keys := storedKeys(t, stores[0]); len(keys) != command.MaxSealKeys {
		t.Errorf("%d keys are stored", len(keys))
	}
}

// `belfry seal-keys` works beside a running belfry and without one, and shows no key.
func TestKeysAreChangedWhileServingAndStopped(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	text := sealed(a.now().Sealer)
	manage := func(q command.KeysRequest, want int) {
		t.Helper()
		keys, err := command.Keys.Do(t.Context(), p.config, q)
		if err != nil || len(*keys) != want {
			t.Fatalf("%+v, %v", keys, err)
		}
		shown, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		stored := a.Set().Store(config.SealKeyStore)
		for _, k := range storedKeysOf(t, stored) {
			if secret, _ := json.Marshal(k); strings.Contains(string(shown)+p.logged.String(),
				strings.Trim(string(secret), `"`)) {
				t.Error("a key is shown")
			}
		}
	}
	manage(command.KeysRequest{}, 1)
	manage(command.KeysRequest{Rotate: true, Keep: new(time.Hour)}, 2)
	p.stop(a)
	if keys, err := command.Keys.Do(t.Context(), p.config,
		command.KeysRequest{Rotate: true, Keep: new(time.Hour)}); err != nil || len(*keys) != 3 ||
		!(*keys)[0].Current || (*keys)[0].Until == nil || (*keys)[2].Until != nil {
		t.Errorf("%+v, %v", keys, err)
	}
	if a = p.start(); !opens(a.now().Sealer, text) {
		t.Error("a text of before is not opened")
	}
	manage(command.KeysRequest{}, 3)
	p.stop(a)
}

func storedKeysOf(t *testing.T, s *store.Store) (secrets [][]byte) {
	t.Helper()
	stored, err := s.Get(t.Context(), command.SealKeyUUID)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := command.SealKeysOf(stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		secrets = append(secrets, k.Secret)
	}
	return secrets
}

func TestARunningProcessReadsTheKeysThatAnotherAdds(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	keys := a.Set().Store(config.SealKeyStore)
	first, err := seal.New(storedKeysOf(t, keys)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.AddSealKey(t.Context(), keys, time.Now().Add(-2*command.SealKeyDelay), time.Hour); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "it seals with the new key", func() bool { return !opens(first, sealed(a.now().Sealer)) })
	if !opens(a.now().Sealer, sealed(first)) {
		t.Error("it does not open what the first key has sealed")
	}
	p.stop(a)
}
