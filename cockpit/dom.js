// SPDX-License-Identifier: LGPL-2.1-or-later

/* Elements as they ought to be, and how those that are there become like them. Text only ever becomes a text node, and attributes are
 * named by the page itself: nothing that the bus says is parsed as HTML. What stays the same is left alone, so that it keeps the focus,
 * what was typed, and whether it is open. */

/* children: more of these, strings, null for nothing, arrays of all that. Attributes: on… are listeners, key tells siblings apart, share
 * (0 to 1) is the width; true and false are with and without the attribute. */
export function h(tag, attributes, ...children) {
    return { tag, attributes: attributes ?? {}, children };
}

/* What is there of such children, each with its key: a node without one goes by where it is written, whether or not those before it
 * are there. */
function place(children, path = '') {
    return children.flatMap((node, i) => {
        if (Array.isArray(node))
            return place(node, `${path}${i} `);
        if (node === null || node === undefined || node === '')
            return [];
        return [{ node, key: typeof node === 'object' ? `${node.tag} ${node.attributes.key ?? path + i}` : `text ${path}${i}` }];
    });
}

function setAttributes(element, attributes) {
    const old = element.pageAttributes ?? {};
    for (const name of new Set([...Object.keys(old), ...Object.keys(attributes)])) {
        const value = attributes[name];
        if (value === old[name] || name === 'key')
            continue;
        if (name.startsWith('on'))
            element[name] = value ?? null;
        else if (name === 'share')
            element.style.setProperty('width', `${Math.round((value ?? 0) * 100)}%`);
        else if (value === undefined || value === false)
            element.removeAttribute(name);
        else
            element.setAttribute(name, value === true ? '' : value);
    }
    element.pageAttributes = attributes;
}

function update(element, node) {
    if (typeof node === 'object') {
        setAttributes(element, node.attributes);
        patch(element, node.children);
    } else if (element.data !== String(node)) {
        element.data = String(node);
    }
}

/* The children of parent become these. */
export function patch(parent, children) {
    const nodes = place(children), wanted = new Set(nodes.map(({ key }) => key)), there = new Map();
    for (const child of [...parent.childNodes]) {
        if (wanted.has(child.pageKey) && !there.has(child.pageKey))
            there.set(child.pageKey, child);
        else
            child.remove();
    }
    let next = parent.firstChild;
    for (const { node, key } of nodes) {
        let child = there.get(key);
        there.delete(key);
        if (!child) {
            child = typeof node === 'object' ? document.createElement(node.tag) : document.createTextNode('');
            child.pageKey = key;
        }
        if (child === next)
            next = next.nextSibling;
        else
            parent.insertBefore(child, next);
        update(child, node);
    }
}
