// SPDX-License-Identifier: LGPL-2.1-or-later

/* A modal dialog that asks before a change. The browser keeps the focus inside, and Escape closes the dialog. */

import { h, patch } from './dom.js';
import { refusal } from './model.js';

/* Opens the dialog. question: {title, body: [nodes], reason: whether the user must type a reason, action: text of the button (none: the
 * dialog only informs), isDanger, run(reason)}. run() makes the change and returns a promise of a message, which told(text) gets. While
 * run() is pending the dialog cannot be closed. If run() rejects, the dialog shows the error and stays open. */
export function ask(dialog, question, told) {
    let isBusy = false, trouble = '', reason = '';

    const close = () => {
        if (!isBusy)
            dialog.close();
    };
    const run = async event => {
        event.preventDefault();
        if (isBusy)
            return;
        isBusy = true;
        trouble = '';
        draw();
        try {
            told(await question.run(reason.trim()));
            dialog.close();
        } catch (error) {
            trouble = refusal(error);
            isBusy = false;
            draw();
        }
    };
    const draw = () => patch(dialog, [h('form', { key: question.title, onsubmit: run },
        h('h2', { id: 'dialog-title' }, question.title),
        question.body,
        question.reason ? h('p', { class: 'field' },
            h('label', { for: 'reason' }, 'Reason'),
            h('input', { id: 'reason', type: 'text', required: true, maxlength: '200', autocomplete: 'off', autofocus: true,
                         oninput: event => { reason = event.target.value; } }),
            h('small', null, 'The reason is stored and shown to all users of the agent.')) : null,
        trouble ? h('p', { class: 'note degraded', role: 'alert' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '✕'), trouble) : null,
        h('p', { class: 'buttons' },
            question.action ? h('button', { type: 'submit', class: question.isDanger ? 'danger' : 'primary', disabled: isBusy }, isBusy ? 'Working …' : question.action) : null,
            h('button', { type: 'button', onclick: close, disabled: isBusy }, question.action ? 'Cancel' : 'Close')))]);

    dialog.oncancel = event => {
        if (isBusy)
            event.preventDefault();
    };
    dialog.onclose = () => { // this event comes with the next frame, when another dialog can be open
        if (!dialog.open)
            patch(dialog, []);
    };
    patch(dialog, []);
    draw();
    dialog.showModal();
    dialog.querySelector('input, button').focus();
}
