package notices

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// DeviceTTL is how long a device is remembered after its last login.
const DeviceTTL = 365 * 24 * time.Hour

const (
	// maxDevices is the maximum number of hashes of a user's devices: two for each device.
	maxDevices = 60

	// renewDevice is the minimum between two writes of a device in use.
	renewDevice = 30 * 24 * time.Hour
)

// RecordDevice records the device of a login, and notifies the user of a new device, unless it is the user's first one.
// It returns the secret of a cookie that will identify the device; "" if none is needed. An error is logged: it does
// not prevent the login, and the next login from the device is reported.
func (s *Notices) RecordDevice(ctx context.Context, user record.User, c sessions.Client) (cookie string) {
	if s.Email == nil || s.Email.Notices[NoticeDevice] == nil {
		return ""
	}
	browser := cmp.Or(c.Device, secret.New())
	since := sinceOf(user)
	place := secret.Digest(user.UUID + " place " + c.Address + " " + c.UserAgent)
	known, first := false, false
	err := s.DB.Devices.Put(ctx, devicesUUID(user.UUID), func(d *record.Devices) error {
		all := s.devicesSince(d.Known, since)
		first = d.UUID == "" || since != "" && len(all) == 0
		browser = cmp.Or(deviceSecret(c, user.UUID, all), browser)
		var changed bool
		if known, changed = s.addDevice(d, all, record.Device{Hash: deviceHash(user.UUID, browser), Since: since,
			Language: c.Language},
			record.Device{Hash: place, Since: since, Language: c.Language}); !changed {
			return record.ErrUnchanged
		}
		return nil
	})
	switch {
	case err != nil:
		s.Log.ErrorContext(ctx, "auth: recording the device of a login failed", "user", user.UUID, "error", err)
		return ""
	case known:
		return ""
	case !first:
		s.Notify(ctx, user, NoticeDevice)
	}
	return browser
}

// devicesUUID is the uuid of the record of a user's devices.
func devicesUUID(user string) string { return "devices-" + secret.Hex(user) }

// sinceOf returns the state of an account that its devices belong to.
func sinceOf(user record.User) string {
	if user.DeviceEpoch == 0 {
		return ""
	}
	return strconv.FormatUint(user.DeviceEpoch, 10)
}

// LanguageOf returns the tag of the language of an account's owner: that of the device that is known longest, by its
// last login. A thief has a later one, whose language the owner may not read. "" if that login named none: then a later
// one must not choose either.
func (s *Notices) LanguageOf(ctx context.Context, user record.User) string {
	known, err := s.DB.Devices.Read(record.AsService(ctx, user.UUID), devicesUUID(user.UUID))
	if err != nil {
		if !errors.Is(err, errs.NotFound) {
			s.Log.WarnContext(ctx, "auth: reading the language of a user failed", "user", user.UUID, "error", err)
		}
		return ""
	}
	all := s.devicesSince(known.Known, sinceOf(user))
	if len(all) == 0 {
		return ""
	}
	return all[0].Language
}

// deviceHash is the stored form of the secret of a device.
func deviceHash(user, browser string) string { return secret.Digest(user + " device " + browser) }

// devicesSince returns the devices that are still remembered.
func (s *Notices) devicesSince(all []record.Device, since string) []record.Device {
	old := record.Timestamp(s.DB.Now().Add(-DeviceTTL))
	return slices.DeleteFunc(slices.Clone(all), func(d record.Device) bool { return d.At <= old || d.Since != since })
}

// addDevice adds a device to a record, and reports whether it was known, by its browser or by its place, and whether
// the record has changed.
func (s *Notices) addDevice(d *record.Devices, all []record.Device,
	browser, place record.Device) (known, changed bool) {
	now := s.DB.Now()
	has := func(one record.Device) int {
		return slices.IndexFunc(all, func(d record.Device) bool { return d.Hash == one.Hash })
	}
	seen := has(browser)
	speaks := seen >= 0 && browser.Language != "" && all[seen].Language != browser.Language
	if seen < 0 {
		seen = has(place)
	}
	if seen >= 0 {
		if all[seen].At > record.Timestamp(now.Add(-renewDevice)) && !speaks {
			return true, false
		}
		if speaks {
			all[seen].Language = browser.Language
		}
		all[seen].At = record.Timestamp(now)
	} else {
		browser.At, place.At = record.Timestamp(now), record.Timestamp(now)
		all = append(all, browser, place)
	}
	d.Known, d.Expires = all[max(0, len(all)-maxDevices):], now.Add(DeviceTTL)
	return seen >= 0, true
}

// deviceSecret returns the secret of a known device among a client's secrets.
func deviceSecret(from sessions.Client, user string, known []record.Device) string {
	secrets := slices.DeleteFunc(append([]string{from.Device}, from.Devices...),
		func(secret string) bool { return secret == "" })
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			hash := deviceHash(user, secret)
			return slices.ContainsFunc(known, func(d record.Device) bool { return d.Hash == hash })
		}
	})
}
