package main

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"text/template"
	"time"
)

//go:embed plot.svg.tmpl
var plotText string

// The plot has a row for each goal, worst first. Its axis is logarithmic, in times the goal: what is left of 1 meets
// it. A mark that lies beyond an end of the axis stands at that end.
const (
	plotLeft, plotRight = 420.0, 930.0 // of the axis
	plotTop, plotRow    = 112.0, 20.0
	plotLeast, plotMost = 0.02, 100.0
)

// plotRowData is a goal in the plot.
type plotRowData struct {
	Y           float64
	ID, Label   string
	Value, Goal string
	Met         bool
	From, To    float64 // of the line from the reference to aileron; equal: there is none
	Marks       []plotMark
}

// plotMark is a subject's mark in a row.
type plotMark struct {
	X, Y    float64
	Subject string
	Title   string
}

// plotTick is a line across all rows.
type plotTick struct {
	X    float64
	Text string
	Goal bool
}

// plot writes the run as a drawing to a file.
func (r *report) plot(path string) error {
	raw, err := r.svg()
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// svg returns the run as a drawing.
func (r *report) svg() ([]byte, error) {
	t, err := template.New("plot").Funcs(template.FuncMap{"x": escapeXML, "px": pixels}).Parse(plotText)
	if err != nil {
		return nil, err
	}
	rows := r.plotRows()
	bottom := plotTop + plotRow*float64(len(rows))
	legend := r.plotLegend()
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Rows": rows, "Legend": legend, "Ticks": plotTicks(),
		"Left": plotLeft, "Right": plotRight, "Top": plotTop, "Bottom": bottom, "Height": bottom + 40,
		"GoalX": plotX(1), "Count": r.count(), "Date": r.began.UTC().Format(time.DateOnly),
	})
	return out.Bytes(), err
}

func (r *report) plotRows() []plotRowData {
	var rows []plotRowData
	for i, j := range r.ranking() {
		y := plotTop + plotRow*(float64(i)+0.5)
		row := plotRowData{Y: y, ID: j.id, Label: j.what + ": " + j.name, Goal: j.goal(),
			Met: j.verdict(j.metric) == "met", Value: "?"}
		if v, ok := j.judged("aileron", j.metric); ok {
			row.Value = number(v)
		}
		for _, s := range r.subjects {
			d, ok := j.distance(s.name, j.metric)
			if !ok {
				continue
			}
			mark := plotMark{X: plotX(d), Y: y, Subject: s.name, Title: s.name + ": " + j.cell(s.name, j.metric)}
			switch s.name {
			case reference:
				row.From = mark.X
			case "aileron":
				row.To = mark.X
			}
			row.Marks = append(row.Marks, mark)
		}
		if row.From == 0 || row.To == 0 {
			row.From, row.To = 0, 0
		}
		rows = append(rows, row)
	}
	return rows
}

// plotLegend returns a mark for each subject, in a line.
func (r *report) plotLegend() []plotMark {
	var marks []plotMark
	x := 24.0
	for _, s := range r.subjects {
		title := s.name
		if s.name == reference {
			title += ": the floor"
		}
		marks = append(marks, plotMark{X: x, Y: 66, Subject: s.name, Title: title})
		x += 28 + 7.2*float64(len(title))
	}
	return marks
}

func plotTicks() []plotTick {
	var ticks []plotTick
	for _, v := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100} {
		t := plotTick{X: plotX(v), Text: fmt.Sprintf("%g", v), Goal: v == 1}
		if t.Goal {
			t.Text = "goal"
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// plotX returns the place of a distance on the axis.
func plotX(distance float64) float64 {
	d := min(max(distance, plotLeast), plotMost)
	return plotLeft + (plotRight-plotLeft)*math.Log(d/plotLeast)/math.Log(plotMost/plotLeast)
}

func pixels(v float64) string { return fmt.Sprintf("%.1f", v) }

func escapeXML(s string) (string, error) {
	var b bytes.Buffer
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
