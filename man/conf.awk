# SPDX-License-Identifier: LGPL-2.1-or-later
# compute-agent.conf(5) from the example of a configuration: what stands above an option explains it.

function flush_block(   i) {
	for (i = 0; i < n_options; i++) {
		print (i == 0 ? ".TP" : ".TQ")
		print ".BR \"" options[i] "\""
	}
	if (n_options > 0 && text == "") {
		print "No comment explains " options[0] > "/dev/stderr"
		failed = 1
		exit
	}
	if (n_options > 0 || in_section)
		printf "%s", text
	text = ""
	n_options = 0
}

function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	sub(/^[.']/, "\\\\\\&&", s)
	return s
}

BEGIN { while ((getline line < head) > 0) print line }

/^#\[/ {
	pending = text
	n = n_options
	text = ""
	section = substr($0, 2)
	print ".SH \"" escape(section) "\""
	printf "%s", pending
	in_section = 1
	next
}
/^#[a-z_]+ =/ {
	line = substr($0, 2)
	sub(/ +$/, "", line)
	options[n_options++] = escape(line)
	next
}
/^# / { if (in_section || after_head) text = text escape(substr($0, 3)) "\n"; next }
/^#$/ { next }
/^$/ {
	if (n_options > 0)
		flush_block()
	after_head = 1
	next
}
END {
	if (!failed)
		flush_block()
	if (failed)
		exit 1
	while ((getline line < tail) > 0) print line
}
