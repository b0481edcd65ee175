// SPDX-License-Identifier: LGPL-2.1-or-later

/* Descriptions of elements, and the update of the document to match them. A text becomes only a text node, and the page itself names
 * all attributes. So data of the bus is never parsed as HTML. An unchanged element stays in the document, with its focus, its input
 * and its open state. */

/* Returns the description of an element. children: descriptions, strings, null for nothing, and arrays of these. An attribute that
 * begins with "on" is a listener. The attribute key identifies the element among its siblings, and share (0 to 1) is the width. The
 * value true sets an attribute without text, and false removes it. */
export function h(tag, attributes, ...children) {
    return { tag, attributes: attributes ?? {}, children };
}

/* Returns the children that are not empty, each with its key. The key of a node without the attribute is its position in the source.
 * Empty nodes count for the position, so it does not depend on them. */
function place(children, path = '') {
    return children.flatMap((node, i) => {
        if (Array.isArray(node))
            return place(node, `${path}${i} `);
        if (node === null || node === undefined || node === '')
            return [];
        return [{ node, key: typeof node === 'object' ? `${node.tag} ${node.attributes.key ?? path + i}` : `text ${path}${i}` }];
    });
}

/* Applies the differences to the attributes of the last call, which the element stores. */
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

/* Makes the children of parent match the descriptions: reuses the nodes with the same key, removes the others, and adds new ones. */
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
