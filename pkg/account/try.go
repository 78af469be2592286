package account

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Fields of a login that waits for its second factor.
const (
	fieldTries    = "_tries"
	fieldInFlight = "_inFlight" // tries that are being verified
)

// errInFlight ends a try whose answer is being verified already.
var errInFlight = errors.New("auth: the same second factor is being verified")

// tryTimeout is longer than a try takes. One that is older has ended with its process.
const tryTimeout = 10 * time.Second

// beginTry returns a pending login after it has counted a try of its second factor. The same answer, sent again while the first is being
// verified, is no try of its own: it waits for how that ends.
func (s *Service) beginTry(ctx context.Context, secret, answer string) (flow store.Stored, login object.Object, err error) {
	if secret == "" {
		return flow, nil, errPending()
	}
	uuid := pendingUUID(secret)
	flow, login, err = s.countTry(ctx, uuid, answer)
	if !errors.Is(err, errInFlight) {
		return flow, login, err
	}
	u, used, err := s.awaitUse(ctx, uuid, func(o object.Object) bool { return s.inFlight(o)[answer] != "" })
	switch {
	case err != nil:
		return flow, nil, err
	case used && u.Answer == answer:
		return flow, nil, u.repeated(errs.Unauthenticated)
	}
	return flow, nil, errWrongCode() // as the first was, or will be
}

// inFlight returns since when the answers of a pending login are being verified.
func (s *Service) inFlight(login object.Object) map[string]string {
	all := map[string]string{}
	_ = json.Unmarshal(login[fieldInFlight], &all)
	begun := timestamp(s.now().Add(-tryTimeout))
	maps.DeleteFunc(all, func(_, at string) bool { return at < begun })
	return all
}

func (s *Service) countTry(ctx context.Context, uuid, answer string) (flow store.Stored, login object.Object, err error) {
	flow, err = s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		switch u, used := useOf(o); {
		case used && u.Answer == answer:
			return store.Mutation{}, u.repeated(errs.Unauthenticated)
		case used:
			return store.Mutation{}, errPending()
		}
		tries, inFlight := 0, s.inFlight(o)
		_ = json.Unmarshal(o[fieldTries], &tries)
		switch {
		case !s.now().Before(timeField(o, fieldExpires)):
			return store.Mutation{}, errPending()
		case inFlight[answer] != "":
			return store.Mutation{}, errInFlight
		case tries >= maxTries:
			return store.Mutation{}, errPending()
		}
		login = o
		inFlight[answer] = timestamp(s.now())
		fields := object.Object{}
		fields.Set(fieldTries, tries+1)
		fields.Set(fieldInFlight, inFlight)
		return store.Mutation{Fields: fields}, nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errPending()
	}
	return flow, login, err
}

// endTry records that a try has failed. If that fails, who sends the same again waits for it in vain, for tryTimeout at most.
func (s *Service) endTry(ctx context.Context, uuid, answer string) {
	_, err := s.tokens.Mutate(context.WithoutCancel(ctx), uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if _, used := useOf(o); used || err != nil {
			return store.Mutation{}, err
		}
		inFlight := s.inFlight(o)
		delete(inFlight, answer)
		fields := object.Object{}
		fields.Set(fieldInFlight, inFlight)
		return store.Mutation{Fields: fields}, nil
	})
	if ignoreNotFound(err) != nil {
		s.log.WarnContext(ctx, "auth: the end of a try of a second factor was not recorded", "error", err)
	}
}
