# SPDX-License-Identifier: LGPL-2.1-or-later
# What is made of metrics.list, by what -v make= says: code, manual (between the files head and tail), rules or dashboard.

function fail(text) {
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

# The line without its first n words.
function rest(n,   s) {
	s = $0
	while (n-- > 0)
		sub(/^[^ ]+ */, "", s)
	return s
}

function text(s) { # in C and JSON
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

function scalar(s) { # in YAML
	gsub(/'/, "''", s)
	return "'" s "'"
}

function roff(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	sub(/^[.']/, "\\\\\\&&", s)
	return s
}

# Remembered until all metrics are known: an expression may name one that follows.
function need(expression) {
	n_expressions++
	expressions[n_expressions] = expression
	where[n_expressions] = FILENAME ":" FNR
}

function only_one_of(expression) {
	gsub(/compute_agent[_:][a-z_]+/, "&{instance=~\"$instance\"}", expression)
	return expression
}

function end_panel() {
	if (n_targets > 0)
		printf "\n      ]\n    }"
	n_targets = 0
}

BEGIN {
	source = "{ \"type\": \"prometheus\", \"uid\": \"${datasource}\" }"
	if (make == "manual")
		while ((getline line < head) > 0)
			print line
	if (make == "rules") {
		print "# SPDX-License-Identifier: LGPL-2.1-or-later"
		print "# Recording and alert rules for Prometheus over the metrics of compute-agentd(8)."
		print "groups:\n  - name: compute-agent\n    rules:"
	}
	if (make == "dashboard") {
		print "{\n  \"title\": \"compute-agent\",\n  \"uid\": \"compute-agent\",\n  \"tags\": [ \"openstack\" ],"
		print "  \"schemaVersion\": 38,\n  \"version\": 1,\n  \"refresh\": \"1m\",\n  \"time\": { \"from\": \"now-6h\", \"to\": \"now\" },"
		print "  \"templating\": { \"list\": ["
		print "    { \"name\": \"datasource\", \"type\": \"datasource\", \"query\": \"prometheus\" },"
		print "    { \"name\": \"instance\", \"type\": \"query\", \"multi\": true, \"includeAll\": true, \"refresh\": 2, \"datasource\": " source ","
		print "      \"query\": \"label_values(compute_agent_build_info, instance)\" }"
		printf "  ] },\n  \"panels\": ["
	}
}

/^#/ || NF == 0 { next }
$1 == "metric" {
	known["compute_agent_" $2] = 1
	name = $2
	type = $3
	labels = rest(3)
	gsub(/ /, ", ", labels)
	next
}
$1 == "help" {
	if (make == "code")
		print "{ " text(name) ", " text(type) ", " text(rest(1)) " },"
	if (make == "manual") {
		print ".TP\n.B compute_agent_" name
		print roff(rest(1))
		print "(" type (labels == "" ? "" : (labels ~ /,/ ? "; labels " : "; label ") labels) ")"
	}
	next
}
$1 == "alert" { alert = $2; severity = $3; duration = $4; next }
$1 == "record" { record = "compute_agent:" $2; known[record] = 1; next }
$1 == "expr" {
	expression = rest(1)
	need(expression)
	if (make == "rules" && record != "")
		print "      - record: " record "\n        expr: " scalar(expression)
	record = ""
	next
}
$1 == "summary" { summary = rest(1); next }
$1 == "description" {
	if (make == "rules") {
		print "      - alert: " alert "\n        expr: " scalar(expression) "\n        for: " duration
		print "        labels:\n          severity: " severity
		print "        annotations:\n          summary: " scalar(summary) "\n          description: " scalar(rest(1))
	}
	next
}
$1 == "panel" {
	if (make == "dashboard") {
		end_panel()
		printf "%s\n    {\n      \"id\": %d, \"title\": %s, \"type\": \"timeseries\",\n", (n_panels > 0 ? "," : ""), n_panels + 1, text(rest(2))
		printf "      \"gridPos\": { \"x\": %d, \"y\": %d, \"w\": 12, \"h\": 8 },\n", n_panels % 2 * 12, int(n_panels / 2) * 8
		printf "      \"datasource\": %s,\n      \"fieldConfig\": { \"defaults\": { \"unit\": %s }, \"overrides\": [] },\n", source, text($2)
		printf "      \"targets\": ["
		n_panels++
	}
	next
}
$1 == "query" {
	at = index($0, " = ")
	need(substr($0, at + 3))
	if (make == "dashboard") {
		printf "%s\n        { \"refId\": \"%c\", \"expr\": %s,", (n_targets > 0 ? "," : ""), 65 + n_targets, text(only_one_of(substr($0, at + 3)))
		printf " \"legendFormat\": %s }", text(substr($0, 7, at - 7))
		n_targets++
	}
	next
}
{ fail("not understood") }

END {
	if (failed)
		exit 1
	for (i = 1; i <= n_expressions; i++)
		for (s = expressions[i]; match(s, /compute_agent[_:][a-z_]+/); s = substr(s, RSTART + RLENGTH))
			if (!(substr(s, RSTART, RLENGTH) in known)) {
				print where[i] ": " substr(s, RSTART, RLENGTH) " is no metric" > "/dev/stderr"
				exit 1
			}
	if (make == "dashboard") {
		end_panel()
		print "\n  ]\n}"
	}
	if (make == "manual")
		while ((getline line < tail) > 0)
			print line
}
