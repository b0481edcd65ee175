# SPDX-License-Identifier: LGPL-2.1-or-later
# org.computeagent.Agent1(5) from the introspection data: the comment above a member explains it.

function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	sub(/^[.']/, "\\\\\\&&", s)
	return s
}

function attribute(name,   s) {
	if (!match($0, " " name "=\"[^\"]*\""))
		return ""
	s = substr($0, RSTART, RLENGTH)
	sub(/^[^"]*"/, "", s)
	sub(/"$/, "", s)
	return s
}

# "@argument: text", and "Name      text" of a list, begin with a bold word.
function print_line(line,   word) {
	if (line ~ /^@[a-z_]+:/) {
		word = substr(line, 2, index(line, ":") - 2)
		print ".BR " word " :\n" escape(substr(line, length(word) + 4))
	} else if (line ~ /^[A-Za-z_]+   *[^ ]/) {
		word = line
		sub(/ .*/, "", word)
		sub(/^[A-Za-z_]+ +/, "", line)
		print ".TP\n.B " word "\n" escape(line)
	} else
		print escape(line)
}

# A comment: its first "Name:" is dropped, "@arg:" begins a line, an empty line a paragraph.
function print_comment(   lines, n, i, line, paragraph) {
	n = split(comment, lines, "\n")
	paragraph = 0
	for (i = 1; i <= n; i++) {
		line = lines[i]
		sub(/^ +/, "", line)
		if (line == "") {
			paragraph = seen
			continue
		}
		if (!seen && line ~ /^[A-Za-z]+:/)
			sub(/^[A-Za-z]+: */, "", line)
		if (line == "")
			continue
		if (paragraph && line !~ /^[A-Za-z_]+   *[^ ]/)
			print par
		else if (line ~ /^@/)
			print ".br"
		paragraph = 0
		seen = 1
		print_line(line)
	}
	seen = 0
	comment = ""
}

BEGIN { while ((getline line < head) > 0) print line }
/<!--/ { inside = 1; comment = ""; sub(/.*<!--/, "") }
inside {
	end = index($0, "-->")
	comment = comment "\n" (end ? substr($0, 1, end - 1) : $0)
	if (end) {
		inside = 0
		if (comment ~ /On the system bus/) {
			par = ".PP"
			sub(/^[^:]*: the compute[^\n]*\n/, "\n", comment)
			print ".SH DESCRIPTION"
			print_comment()
		}
	}
	next
}
/<interface / && interfaces++ {
	print ".SH " toupper(attribute("name"))
	par = ".PP"
	print_comment()
	methods = properties = 1
}
/<method / { name = attribute("name"); ins = outs = ""; if (!methods++) print ".SH METHODS" }
/<arg / {
	one = attribute("type") " " attribute("name")
	if (attribute("direction") == "in") ins = ins (ins ? ", " : "") one
	else outs = outs (outs ? ", " : "") one
}
/<\/method>/ {
	print ".TP"
	print ".B \"" name "(" ins ")" (outs ? " \\-> (" outs ")" : "") "\""
	par = ".IP"
	print_comment()
}
/<signal / { name = attribute("name"); ins = outs = ""; if (!signals++) print ".SH SIGNALS" }
/<\/signal>/ {
	print ".TP"
	print ".B \"" name "(" outs ")\""
	par = ".IP"
	print_comment()
}
/<property / {
	if (!properties++) print ".SH PROPERTIES"
	print ".TP"
	print ".B \"" attribute("type") " " attribute("name") "\""
	par = ".IP"
	print_comment()
}
END { while ((getline line < tail) > 0) print line }
