package auth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// DeviceTTL is how long a device is known after its last login.
const DeviceTTL = 365 * 24 * time.Hour

const (
	// maxDevices is how many hashes of devices are kept of a user: two for each.
	maxDevices = 60

	// renewDevice is the minimum between two writes of a device in use.
	renewDevice = 30 * 24 * time.Hour
)

// fieldDevices holds the devices of a user. Their record says nothing about them: it has hashes, of which those of one
// browser are different for each of its users.
const fieldDevices = "_devices"

// knownDevice is a device from which a user has logged in: a browser by its cookie, or a network address with a user agent.
type knownDevice struct {
	Hash string `json:"hash"`
	At   string `json:"at"` // of the last login, to a month
}

func devicesOf(body []byte) (all []knownDevice) {
	_ = json.Unmarshal(object.Field(body, fieldDevices), &all)
	return all
}

// recordDevice records the device of a login, and notifies the user of one that was not seen before. The first one of a
// user is no news. It returns the secret of a cookie by which the device will be known; "" if it needs none.
// An error is logged: it keeps nobody from logging in, and the next login from the device is reported.
func (s *Service) recordDevice(ctx context.Context, user store.Stored, c Client) (cookie string) {
	if s.email == nil || s.email.Notices[NoticeDevice] == nil {
		return ""
	}
	secret := c.Device
	if secret == "" {
		secret = newSecret()
	}
	browser, place := digest(user.UUID+" device "+secret), digest(user.UUID+" place "+c.Address+" "+c.UserAgent)
	uuid := "devices-" + hexDigest(user.UUID)
	known, first := false, false
	var err error
	for range maxAttempts {
		first = false
		_, err = s.tokens.Mutate(ctx, uuid, func(now store.Stored) (m store.Mutation, _ error) {
			m.Fields, known = s.deviceFields(now.Body, browser, place)
			return m, nil
		})
		if !errors.Is(err, errs.NotFound) {
			break
		}
		first = true
		fields, _ := s.deviceFields(nil, browser, place)
		if _, err = s.tokens.Save(ctx, fields, uuid); !errors.Is(err, errs.Exists) {
			break
		}
	}
	switch {
	case err != nil:
		s.log.ErrorContext(ctx, "auth: recording the device of a login failed", "user", user.UUID, "error", err)
		return ""
	case known:
		return ""
	case !first:
		s.notify(ctx, user, NoticeDevice)
	}
	return secret
}

// deviceFields returns the fields of a record to which a device is added, nil for none to change, and whether it was
// known: by its browser or by its place.
func (s *Service) deviceFields(body []byte, browser, place string) (fields object.Object, known bool) {
	now := s.now()
	all := slices.DeleteFunc(devicesOf(body), func(d knownDevice) bool { return d.At <= timestamp(now.Add(-DeviceTTL)) })
	has := func(hash string) int {
		return slices.IndexFunc(all, func(d knownDevice) bool { return d.Hash == hash })
	}
	seen := has(browser)
	if seen < 0 {
		seen = has(place)
	}
	if seen >= 0 {
		if all[seen].At > timestamp(now.Add(-renewDevice)) {
			return nil, true
		}
		all[seen].At = timestamp(now)
	} else {
		all = append(all, knownDevice{browser, timestamp(now)}, knownDevice{place, timestamp(now)})
	}
	fields = object.Object{}
	fields.Set(fieldDevices, all[max(0, len(all)-maxDevices):])
	fields.Set(fieldExpires, timestamp(now.Add(DeviceTTL)))
	return fields, seen >= 0
}
