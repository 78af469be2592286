package account

import (
	"cmp"
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

	Since string `json:"since,omitempty"` // fieldDeviceEpoch of the user
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
	secret := cmp.Or(c.Device, newSecret())
	since := string(object.Field(user.Body, fieldDeviceEpoch))
	place := digest(user.UUID + " place " + c.Address + " " + c.UserAgent)
	uuid := "devices-" + hexDigest(user.UUID)
	known, first := false, false
	var err error
	for range maxAttempts {
		first = false
		_, err = s.tokens.Mutate(ctx, uuid, func(now store.Stored) (m store.Mutation, _ error) {
			all := s.devicesSince(now.Body, since)
			first = since != "" && len(all) == 0
			secret = cmp.Or(deviceSecret(c, user.UUID, all), secret)
			m.Fields, known = s.deviceFields(all, knownDevice{Hash: deviceHash(user.UUID, secret), Since: since}, knownDevice{Hash: place, Since: since})
			return m, nil
		})
		if !errors.Is(err, errs.NotFound) {
			break
		}
		first = true
		fields, _ := s.deviceFields(nil, knownDevice{Hash: deviceHash(user.UUID, secret), Since: since}, knownDevice{Hash: place, Since: since})
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

// deviceHash is what is stored of the secret of a device.
func deviceHash(user, secret string) string { return digest(user + " device " + secret) }

// devicesSince returns the devices of a record that are known still.
func (s *Service) devicesSince(body []byte, since string) []knownDevice {
	old := timestamp(s.now().Add(-DeviceTTL))
	return slices.DeleteFunc(devicesOf(body), func(d knownDevice) bool { return d.At <= old || d.Since != since })
}

// deviceFields returns the fields of a record with devices to which one is added, nil for none to change, and whether it was
// known: by its browser or by its place.
func (s *Service) deviceFields(all []knownDevice, browser, place knownDevice) (fields object.Object, known bool) {
	now := s.now()
	has := func(one knownDevice) int {
		return slices.IndexFunc(all, func(d knownDevice) bool { return d.Hash == one.Hash })
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
		browser.At, place.At = timestamp(now), timestamp(now)
		all = append(all, browser, place)
	}
	fields = object.Object{}
	fields.Set(fieldDevices, all[max(0, len(all)-maxDevices):])
	fields.Set(fieldExpires, timestamp(now.Add(DeviceTTL)))
	return fields, seen >= 0
}

// fieldDeviceEpoch is the epoch of a user before which no device is known: the write of the user forgets all of them. The first login
// after it is no news, as that of a new user is not.
const fieldDeviceEpoch = "_deviceEpoch"

// forgetDevices returns the fields of a user whose devices are forgotten with the end of all sessions.
func forgetDevices(user object.Object) object.Object {
	fields := object.Object{}
	fields.Set(fieldDeviceEpoch, epoch(user)+1)
	return fields
}
