// SPDX-License-Identifier: LGPL-2.1-or-later

/* The page: makes elements of the results of model.js, and runs the actions of the buttons.
 *
 * Each change of a document draws the whole page again, at most once in 20 ms. patch() of dom.js then changes only the elements that
 * differ. An action that changes the host opens a dialog first. The result of an action is a message in the element "said", which is
 * cleared after SAID_MSEC. */

import { Bus } from './bus.js';
import { ask } from './dialog.js';
import { h, patch } from './dom.js';
import * as model from './model.js';

const { cockpit } = window;
const page = document.getElementById('page'), said = document.getElementById('said'), dialog = document.getElementById('dialog');
const REDRAW_MSEC = 15000; // updates the relative times
const SAID_MSEC = 10000;
const UNKNOWN = 'Not known yet.'; // for the rows of an unread document

let filter = '', moved = null, movedUsec = 0, movedTrouble = '', isDrawing = false, forgetting = 0;
const bus = new Bus(cockpit, ['status', 'tree', 'host', 'claims', 'problems', 'plan', 'audit'], draw);

// ---- Small parts

/* Returns a tag with a sign and a word, which is readable without colours. */
function tag({ state, mark, word }) {
    return h('span', { class: `tag ${state}` }, h('span', { class: 'mark', 'aria-hidden': 'true' }, mark), word);
}

/* Returns a text from outside for a table. The style wraps long texts. */
function foreign(text) {
    return h('span', { class: 'foreign' }, text);
}

function button(text, onclick, more = {}) {
    return h('button', { type: 'button', onclick, ...more }, text);
}

/* Returns a list of inventories with bars. The bar is hidden from screen readers, because the text has the same data. */
function bars(units) {
    return h('ul', { class: 'bars' }, units.map(unit => h('li', { key: unit.name },
        h('span', { class: 'name' }, unit.name),
        h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { class: unit.isOver ? 'fill over' : 'fill', share: unit.share })),
        h('span', { class: 'amount' }, unit.isOver ? '✕ ' : '', unit.text, unit.note ? h('small', null, ` (${unit.note})`) : null))));
}

function holders(all) {
    return h('ul', { class: 'holders' }, all.map(one => h('li', { key: `${one.claim} ${one.text} ${one.what}` }, h('b', null, one.text), one.what ? `: ${one.what}` : '')));
}

function section(id, title, ...children) {
    return h('section', { key: id, id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), children);
}

/* Returns the title of a section with the number of its rows, if their document is read. */
function numbered(words, document, n) {
    return document ? `${words} (${n})` : words;
}

/* Returns a table. columns: [title, function that returns the cell of a row]. key: the member that identifies a row. On a narrow page each row
 * is a card. */
function table(label, columns, rows, key) {
    return h('table', { 'aria-label': label },
        h('thead', null, h('tr', null, columns.map(([title]) => h('th', { scope: 'col' }, title)))),
        h('tbody', null, rows.map(row => h('tr', { key: row[key] }, columns.map(([title, cell]) => h('td', { 'data-label': title }, cell(row)))))));
}

// ---- Actions

/* Shows a message for SAID_MSEC. */
function tell(text) {
    clearTimeout(forgetting);
    said.textContent = text;
    forgetting = setTimeout(() => { said.textContent = ''; }, SAID_MSEC);
}

function capital(text) {
    return text[0].toUpperCase() + text.slice(1);
}

/* Returns the message for a change. error: the reason why it is not published yet, or ''. */
function published(what, error) {
    return error ? `${what}. Not published yet: ${model.plain(error)}` : `${what}.`;
}

function askCordon(device, title) {
    ask(dialog, {
        title: `Cordon ${title}?`,
        body: [h('p', null, 'The agent rejects new claims on it, and schedulers skip it. Its guests stay. The cordon ends when you uncordon it.')],
        reason: true,
        action: 'Cordon',
        isDanger: true,
        run: reason => bus.call('Cordon', 'ss', device, reason).then(([error]) => published(`${capital(title)} is cordoned`, error)),
    }, tell);
}

function askUncordon(device, title, words) {
    ask(dialog, {
        title: `Uncordon ${title}?`,
        body: [h('p', null, 'Schedulers can place guests on it again.'), words ? h('p', null, words) : null],
        action: 'Uncordon',
        run: () => bus.call('Uncordon', 's', device).then(([error]) => published(`${capital(title)} is uncordoned`, error)),
    }, tell);
}

function askRelease(claim) {
    ask(dialog, {
        title: `Release claim #${claim.id}?`,
        body: [
            h('p', null, h('b', null, claim.name), ` has ${claim.holds || 'nothing'}. Other guests can claim these resources immediately.`),
            claim.state === 'confirmed' ? h('p', null, 'If the guest still runs, the next poll creates a new claim for it.') : null,
        ],
        reason: true,
        action: 'Release',
        isDanger: true,
        run: reason => bus.call('Release', 'xs', claim.id, reason).then(() => `Claim #${claim.id} is released.`),
    }, tell);
}

function askHeal(audit) {
    ask(dialog, {
        title: `Heal ${audit.nHealable} of ${model.count(audit.findings.length, 'finding')}?`,
        body: [
            h('p', null, 'The agent checks each finding again, and repairs only those that are certain.'),
            h('ul', null, audit.findings.filter(one => one.isHealable).slice(0, 20).map(one => h('li', null, one.text, h('br'), h('small', null, one.remedy)))),
        ],
        action: 'Heal',
        isDanger: true,
        run: () => bus.call('Heal').then(([text]) => {
            const after = model.audit(JSON.parse(text), bus.documents.status, Date.now() * 1000);
            return after.nOpen === 0 ? 'Placement, claims and guests agree.' : `${model.count(after.nOpen, 'finding')} left.`;
        }),
    }, tell);
}

async function sync() {
    try {
        const [error] = await bus.call('Sync');
        tell(error ? `Polled. Placement is not equal to this host: ${model.plain(error)}` : 'Polled and published.');
    } catch (error) {
        tell(model.refusal(error));
    }
}

function names(all) {
    return h('ul', null, all.slice(0, 20).map(one => h('li', null, one)), all.length > 20 ? h('li', null, `and ${all.length - 20} more`) : null);
}

async function doRetire() {
    const [text] = await bus.call('Retire');
    if (!model.retire(JSON.parse(text)).isDone)
        throw new Error('A guest or a provider was added during the request. Nothing was changed');
    return 'The host is retired.';
}

/* Asks for a retirement. Calls GetRetire first, so that the dialog lists the real effects. */
async function askRetire() {
    try {
        const [text] = await bus.call('GetRetire'), found = model.retire(JSON.parse(text));
        ask(dialog, found.isFree ? {
            title: 'Retire this host?',
            body: [h('p', null, 'The agent removes these providers from Placement, and publishes nothing until you undo the retirement:'), names(found.providers)],
            action: 'Retire',
            isDanger: true,
            run: doRetire,
        } : {
            title: 'This host cannot be retired yet',
            body: [found.holders.length > 0 ? [h('p', null, 'Still on this host:'), names(found.holders)] : null,
                   found.foreign.length > 0 ? [h('p', null, 'Providers of other services, which must remove them:'), names(found.foreign)] : null],
        }, tell);
    } catch (error) {
        tell(model.refusal(error));
    }
}

function askUndoRetire() {
    ask(dialog, {
        title: 'Publish this host to Placement again?',
        body: [h('p', null, 'The host stays cordoned until you uncordon it.')],
        action: 'Publish',
        run: () => bus.call('UndoRetire').then(([error]) => published('The host is no longer retired', error)),
    }, tell);
}

async function compare() {
    try {
        const [text] = await bus.call('Audit');
        const { nOpen } = model.audit(JSON.parse(text), bus.documents.status, Date.now() * 1000);
        tell(nOpen === 0 ? 'Placement, claims and guests agree.' : `${model.count(nOpen, 'finding')}.`);
    } catch (error) {
        tell(model.refusal(error));
    }
}

async function showReshape() {
    moved = null;
    movedTrouble = '';
    try {
        const [text] = await bus.call('GetReshape');
        moved = text ? model.reshape(JSON.parse(text)) : 'nothing';
        movedUsec = Date.now() * 1000;
    } catch (error) {
        movedTrouble = model.refusal(error);
    }
    draw();
}

// ---- Sections

function drawStopped() {
    const { word, text } = model.unit(bus.unit);
    return h('section', { key: 'stopped', class: 'verdict degraded' },
        h('h2', null, tag({ state: 'degraded', mark: '✕', word }), ' The agent is not running'),
        text ? h('p', { class: 'reason' }, `compute-agent ${text}`) : null,
        h('p', null, 'Guests continue to run, but the agent creates no claims and publishes no changes. This page updates automatically when the agent runs again.'),
        bus.trouble ? h('p', null, `Cannot use the system bus: ${model.plain(bus.trouble)}`) : null,
        h('p', null, 'For the cause, run ', h('code', null, 'journalctl -eu compute-agent'), '. To start the agent, run ', h('code', null, 'systemctl start compute-agent')),
        h('p', { class: 'buttons' }, button('Show the service', () => cockpit.jump('/system/services#/compute-agent.service'))));
}

function drawOperation() {
    const { Operation: name, OperationPhase: phase, OperationDone: done, OperationTotal: total } = bus.operation;
    return name ? h('p', { class: 'note pending' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '…'),
                    `${model.operation(name)}: ${model.plain(phase)}${total ? `, ${done} of ${model.count(total, 'request')}` : ''}`) : null;
}

/* Shows the remaining claims of a cordoned host, and its guests without one, like "computectl drain". */
function drawDrain() {
    const left = model.drain(bus.documents.claims, bus.documents.host);
    return h('div', { key: 'drain', id: 'drain' },
        h('p', null, left.words),
        left.n === 0 ? null : [
            h('ul', null, left.names.map(name => h('li', { key: name }, foreign(name)))),
            left.n > left.names.length ? h('p', null, `and ${left.n - left.names.length} more`) : null]);
}

function drawVerdict(now) {
    const verdict = model.verdict(bus.documents.status, now);
    return h('section', { key: 'verdict', id: 'verdict', class: `verdict ${verdict.state}` },
        h('h2', null, tag(verdict), ' ', verdict.summary),
        h('ul', { class: 'reasons' }, verdict.reasons.map((reason, i) => h('li', { key: i }, tag(reason), ' ', reason.text,
            h('div', null, reason.command ? ['Next: ', h('code', null, reason.command)] : null, reason.advice ? h('small', null, ` ${reason.advice}`) : null)))),
        drawOperation(),
        h('dl', { class: 'facts' }, verdict.facts.map(([name, value]) => h('div', { key: name }, h('dt', null, name), h('dd', null, value)))),
        verdict.cordoned && !verdict.retired ? drawDrain() : null,
        h('p', { class: 'buttons' },
            verdict.retired ? button('Undo the retirement', askUndoRetire)
                : verdict.cordoned ? [button('Uncordon the host', () => askUncordon('', 'the host', verdict.cordoned)),
                                      verdict.standalone ? null : button('Retire the host …', askRetire)]
                : button('Cordon the host', () => askCordon('', 'the host')),
            button('Sync now', sync)));
}

function drawDevice(device) {
    const name = `device ${device.title}`;
    return h('li', { key: device.key, class: 'device', 'data-device': device.title },
        h('h4', null, h('span', { class: 'mono' }, device.title), ' ', device.tags.map(tag)),
        h('p', null, device.product),
        bars(device.units),
        holders(device.holders),
        device.provider ? device.cordoned ? button('Uncordon', () => askUncordon(device.provider, name, ''), { 'aria-label': `Uncordon ${name}` })
                                          : button('Cordon', () => askCordon(device.provider, name), { 'aria-label': `Cordon ${name}` }) : null);
}

function drawCpu(cpu) {
    return h('li', { key: cpu.id, class: `cpu ${cpu.state}`, title: cpu.text },
        h('span', { 'aria-hidden': 'true' }, String(cpu.id), h('small', null, cpu.state === 'held' ? `#${cpu.claim}` : cpu.state === 'off' ? 'off' : '·')),
        h('span', { class: 'unseen' }, cpu.text));
}

function drawCell(cell) {
    return h('section', { key: cell.id, class: 'cell' },
        h('h3', null, `Cell ${cell.id}`),
        h('p', null, cell.text),
        bars(cell.amounts),
        h('div', { class: 'cores' }, cell.cores.map((cpus, i) => h('ul', { key: i, class: 'core' }, cpus.map(drawCpu)))),
        holders(cell.holders),
        h('ul', { class: 'devices' }, cell.devices.map(drawDevice)));
}

function drawHost() {
    const { host, tree, claims } = bus.documents, picture = model.host(host, tree, claims);
    if (!host && !tree)
        return section('host', 'Host', h('p', null, 'The agent has not polled the host yet.'));
    return section('host', 'Host',
        h('p', null, picture.facts),
        bars(picture.amounts),
        claims ? null : h('p', null, 'The claims are not known yet.'),
        h('p', { class: 'legend' }, h('small', null, '#3 on a CPU: dedicated to claim 3.  ·: free or shared.')),
        h('div', { class: 'cells' }, picture.cells.map(drawCell)),
        picture.devices.length > 0 ? [h('h3', null, 'Other providers'), h('ul', { class: 'devices' }, picture.devices.map(drawDevice))] : null);
}

function drawName(row) {
    return [foreign(row.name), row.problems.map(text => h('div', { class: 'note warning' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '!'), text))];
}

function drawClaims(now) {
    const { claims, problems } = bus.documents, found = model.claims(claims, problems, now, filter);
    const columns = [
        ['ID', row => `#${row.id}`],
        ['Guest', drawName],
        ['State', row => [row.words, row.expires ? h('small', null, ` (${row.expires})`) : null]],
        ['Resources', row => row.holds],
        ['Devices, CPUs, cells', row => row.where],
        ['Since', row => row.created],
        ['', row => button('Release', () => askRelease(row), { 'aria-label': `Release claim #${row.id}` })],
    ];
    return section('claims', numbered('Claims', claims, found.n),
        found.n > 0 ? h('p', { class: 'field' }, h('label', { for: 'filter' }, 'Filter'), h('input', { id: 'filter', type: 'search', autocomplete: 'off', oninput: event => {
            filter = event.target.value;
            draw();
        } })) : h('p', null, claims ? 'No claims on this host.' : UNKNOWN),
        found.rows.length > 0 ? table('Claims', columns, found.rows, 'id') : null,
        found.nFound > found.rows.length ? h('p', null, `${found.nFound - found.rows.length} more. Use the filter, or run `, h('code', null, 'computectl claims')) : null,
        found.n > 0 && found.nFound === 0 ? h('p', null, 'No claim matches the filter.') : null,
        drawEvents(now));
}

function drawEvents(now) {
    const { events } = bus.documents, rows = model.events(events, now);
    const columns = [
        ['Time', row => row.when],
        ['Event', row => row.event],
        ['Claim', row => row.claim],
        ['Guest', row => foreign(row.name)],
        ['Resources', row => foreign(row.what)],
        ['Author', row => foreign(row.author)],
        ['Reason', row => foreign(row.reason)],
    ];
    return h('details', { key: 'events', ontoggle: event => event.target.open && bus.add('events') },
        h('summary', null, 'Events and their authors'),
        rows.length > 0 ? table('Events', columns, rows, 'id') : h('p', null, events ? 'No events recorded.' : 'Reading …'));
}

function drawGuests() {
    const { host, claims, status } = bus.documents, guests = model.guests(host, claims, status);
    const columns = [
        ['Name', row => foreign(row.name)],
        ['State', row => row.state],
        ['CPUs and memory', row => row.has],
        ['Devices', row => String(row.devices)],
        ['Claim', row => row.claim ? `#${row.claim}` : row.lacks ? tag({ state: 'warning', mark: '!', word: 'none' })
            : row.claim === null ? UNKNOWN : 'none'],
    ];
    return section('guests', numbered('Guests', host, guests.length), guests.length > 0 ? table('Guests', columns, guests, 'key')
        : h('p', null, host ? 'The hypervisor has no guests.' : UNKNOWN));
}

function drawPlan() {
    const { steps, words } = model.plan(bus.documents.plan, bus.documents.status);
    return steps.length === 0 ? h('p', { key: 'plan' }, words)
        : h('details', { key: 'plan' }, h('summary', null, words),
            h('ol', null, steps.slice(0, 200).map(step => h('li', null, h('code', null, step.request), ` ${step.name} `, h('small', null, step.summary)))));
}

function drawAudit(now) {
    const audit = model.audit(bus.documents.audit, bus.documents.status, now);
    return [
        !audit ? h('p', null, 'The agent has not compared them yet.')
            : audit.findings.length === 0 ? h('p', null, audit.words)
            : [h('p', null, audit.words),
                h('ul', { class: 'findings' }, audit.findings.map((one, i) => h('li', { key: i },
                    tag(one.isOpen ? { state: 'warning', mark: '!', word: 'differs' } : { state: 'ok', mark: '✓', word: one.outcome || 'information' }), ' ', one.text,
                    h('div', null, h('small', null, one.outcome || one.remedy)))))],
        audit && audit.inFlight > 0 ? h('p', null, h('small', null, `Skipped ${model.count(audit.inFlight, 'recent consumer')}.`)) : null,
        h('p', { class: 'buttons' }, button('Compare now', compare),
            audit && audit.nHealable > 0 ? button('Heal …', () => askHeal(audit)) : null),
    ];
}

function drawReshape(now) {
    return [
        h('p', { class: 'buttons' }, button('Show the moves of a reshape', showReshape)),
        movedTrouble ? h('p', { class: 'note degraded', role: 'alert' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '✕'), movedTrouble) : null,
        moved === 'nothing' ? h('p', null, `Nothing to move (checked ${model.ago(movedUsec, now)}): the tree in Placement has the shape of this host.`)
            : moved ? [h('ul', null, moved.moves.map(move => h('li', { key: move.consumer }, h('b', null, move.consumer), `: ${move.from.join(', ')} → ${move.to.join(', ')}`)),
                         moved.problems.map(one => h('li', { class: 'note warning' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '!'), `${one.consumer}: ${one.text}`))),
                       h('p', null, 'To reshape, run ', h('code', null, 'computectl reshape'))] : null,
    ];
}

function drawDifferences(now) {
    const standalone = bus.documents.status?.sync_state === 'standalone';
    return section('differences', 'Differences from Placement',
        standalone ? h('p', null, 'No Placement is configured.') : [drawPlan(), h('h3', null, 'Placement, claims and guests'), drawAudit(now), h('h3', null, 'Shape of the tree'), drawReshape(now)]);
}

function drawNow() {
    const now = Date.now() * 1000, node = bus.documents.status?.node;
    isDrawing = false;
    page.setAttribute('aria-busy', String(bus.isRunning === null));
    patch(page, [
        h('h1', { key: 'title' }, 'Compute agent', node ? h('small', null, ` ${model.plain(node)}`) : null),
        bus.isRunning === false ? drawStopped()
            : !bus.documents.status ? h('p', { key: 'wait' }, 'Reading …')
            : [drawVerdict(now), drawHost(), drawClaims(now), drawGuests(), drawDifferences(now)],
    ]);
}

/* Schedules one drawing for all changes of the next 20 ms. */
function draw() {
    if (isDrawing)
        return;
    isDrawing = true;
    setTimeout(drawNow, 20);
}

// ---- The light or dark style of the shell

function followStyle(style) {
    const wanted = style || localStorage.getItem('shell:style') || 'auto';
    const isDark = wanted === 'dark' || (wanted === 'auto' && window.matchMedia('(prefers-color-scheme: dark)').matches);
    document.documentElement.classList.toggle('dark', isDark);
}

followStyle();
window.addEventListener('storage', event => event.key === 'shell:style' && followStyle());
window.addEventListener('cockpit-style', event => followStyle(event.detail?.style));
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => followStyle());

draw();
setInterval(draw, REDRAW_MSEC);
