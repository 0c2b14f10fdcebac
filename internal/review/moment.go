package review

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Moments are the forms that [ParseMoment] takes, for usage.
const Moments = "a date such as 2026-11-27, a time of day such as 14:30, today, yesterday, RFC 3339, or a duration " +
	"before now such as 10m, 8h or 90d"

// ParseMoment returns the time that a text names, in the zone of now: a day is its beginning, and a time of day the
// last one before now. "" is the zero time.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	day := func(back int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()-back, 0, 0, 0, 0, now.Location())
	}
	switch strings.ToLower(text) {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	case "today":
		return day(0), nil
	case "yesterday":
		return day(1), nil
	}
	for _, form := range []string{"15:04", time.TimeOnly} {
		at, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		moment := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		if moment.After(now) {
			moment = moment.AddDate(0, 0, -1)
		}
		return moment, nil
	}
	return parseDate(text, Moments, now)
}

// Dates are the forms that [ParseDate] takes, for usage.
const Dates = "a date such as 2026-11-27, RFC 3339, or a duration before now such as 8h or 90d"

// ParseDate is ParseMoment for what cannot be undone: without the forms whose day or time depends on when it is read.
func ParseDate(text string, now time.Time) (time.Time, error) { return parseDate(text, Dates, now) }

// parseDate returns the time of a date or before now. forms are for the error.
func parseDate(text, forms string, now time.Time) (time.Time, error) {
	if span, ok := parseSpan(text); ok {
		return now.Add(-span), nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly, time.DateTime, "2006-01-02T15:04:05",
		"2006-01-02 15:04", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Time{}, hint.New(errors.New("it has no unit"),
			"write %[1]dm, %[1]dh or %[1]dd for minutes, hours or days", n)
	}
	return time.Time{}, fmt.Errorf("it must be %s", forms)
}

// parseSpan parses a duration, which may be a number of days.
func parseSpan(s string) (time.Duration, bool) {
	if number, isDays := strings.CutSuffix(s, "d"); isDays {
		days, err := strconv.ParseUint(number, 10, 16)
		return time.Duration(days) * 24 * time.Hour, err == nil
	}
	span, err := time.ParseDuration(s)
	return span, err == nil && span >= 0 && s != "0"
}
