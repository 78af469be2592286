package modeling

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/config"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// announceInterval is the time until events that could not be written are tried again.
const announceInterval = time.Minute

// Part publishes the changes of before a crash, and those whose events could not be written into the outbox.
func (e *Editor) Part() serving.Part {
	return serving.Part{
		Name: "the changes of the configuration",
		Start: func(context.Context, *serving.Generation) error {
			e.silent = true
			e.running.NowAndEvery(announceInterval, func(ctx context.Context) bool {
				e.changing.Lock()
				defer e.changing.Unlock()
				if e.silent {
					e.announce(ctx)
				}
				return true
			})
			return nil
		},
		Stop: e.running.Stop,
	}
}

// announce publishes the changes whose events are not in the outbox yet.
func (e *Editor) announce(ctx context.Context) {
	e.silent = true
	j := journalIn(e.Served.Now().Config.Data)
	all, err := j.all()
	for _, each := range slices.Backward(all) {
		if err != nil || !each.Silent || each.Pending {
			continue
		}
		if err = e.publish(ctx, each); err == nil {
			each.Silent = false
			err = j.put(each)
		}
	}
	if err != nil {
		e.Log.Warn("the event of a change of the configuration can't be published yet", "error", err)
		return
	}
	e.silent = false
}

// The record by which changes are published: it is written with the event of each, and has the number of the latest.
const (
	recordUUID   = "configuration"
	announcedKey = "announced"
)

// publish writes the event of a change into the outbox, once: the record of the write says that it is there.
func (e *Editor) publish(ctx context.Context, made *entry) error {
	served := e.Served.Now()
	records, users := served.Set.Store(config.TokenStore), served.Config.Authentication.UserStore
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginHTTP, Actor: &made.By.UUID,
		Ctx: event.Ctx{Request: made.By.Request, Address: made.By.Address, UserAgent: made.By.UserAgent}})
	changed := func(v *event.Envelope) {
		*v = event.Envelope{ID: v.ID, Event: event.ConfigChanged, Time: v.Time, Store: users, UUID: made.By.UUID,
			Revision: v.Revision, Actor: v.Actor, Origin: v.Origin, Changed: made.Keys, Ctx: v.Ctx}
	}
	number := object.Object{}
	number.Set(announcedKey, made.Number)
	for {
		_, err := records.Mutate(ctx, recordUUID, func(now store.Stored) (store.Mutation, error) {
			var latest int
			err := json.Unmarshal(object.Field(now.Body, announcedKey), &latest)
			if err == nil && latest >= made.Number {
				return store.Mutation{}, nil // before a crash
			}
			return store.Mutation{Fields: number, ExtraEvents: []store.ExtraEvent{changed}}, nil
		})
		if !errors.Is(err, errs.NotFound) {
			return err
		}
		if _, err = records.Save(ctx, number, recordUUID, changed); !errors.Is(err, errs.Exists) {
			return err
		}
	}
}
