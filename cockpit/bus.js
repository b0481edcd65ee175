// SPDX-License-Identifier: LGPL-2.1-or-later

/* The agent on the system bus. A Bus reads the agent's documents with the rights of the logged-in user, and reads them again after
 * each change. It calls methods that change the host with administrative access, if the user has it. It does not know the page.
 *
 * For each document at most one call is pending. If the document changes during this call, it is read again afterwards. Each restart
 * of the agent discards all documents, and answers of the earlier agent are ignored. While the agent does not run, the Bus reads the
 * state of its service from systemd. */

const NAME = 'org.computeagent.Agent1', PATH = '/org/computeagent/Agent1';
const RETRY_MSEC = 3000;
const SYSTEMD = 'org.freedesktop.systemd1', UNIT = '/org/freedesktop/systemd1/unit/compute_2dagent_2eservice';
const UNIT_PROPERTIES = [['Unit', 'ActiveState'], ['Service', 'Result'], ['Service', 'StatusText'], ['Service', 'ExecMainStatus']];
const REREAD_MSEC = 20000; // for documents that were not readable: no signal reports that the user can read them now

export class Bus {
    /* documents: their names. changed() is called after each change, never within a call of a method of this object. */
    constructor(cockpit, documents, changed) {
        this.cockpit = cockpit;
        this.names = documents;
        this.changed = changed;
        this.isRunning = null; // null: not known yet
        this.trouble = ''; // the reason if the bus is not reachable
        this.isReadingUnit = false;
        this.unit = null; // properties of the service in systemd, while the agent does not run
        this.forget();
        this.open();
    }

    forget() {
        this.documents = {};
        this.reads = {}; // by document: 'reading' while a call is pending, 'again' if it must be repeated
        this.operation = {};
    }

    /* Connects to the bus, and connects again when the connection ends. Events of an earlier connection are ignored. */
    open() {
        const client = this.cockpit.dbus(NAME, { bus: 'system' });
        this.client = client;
        client.addEventListener('owner', (event, owner) => this.meet(client, owner));
        client.addEventListener('close', (event, options) => {
            if (client !== this.client)
                return;
            // Cockpit closes a connection with "not-found" if the name had no owner when it was opened: the agent is stopped.
            this.trouble = options.problem === 'not-found' ? '' : options.problem ?? '';
            this.meet(client, null);
            setTimeout(() => this.open(), RETRY_MSEC);
        });
        client.subscribe({ path: PATH, interface: NAME, member: 'DocumentChanged' }, (path, iface, signal, [document]) => this.read(document));
        client.subscribe({ path: PATH, interface: 'org.freedesktop.DBus.Properties', member: 'PropertiesChanged' },
                         (path, iface, signal, [, values]) => this.follow(values));
    }

    /* Handles a new owner of the agent's name, or null without owner. All documents must be read again. */
    meet(client, owner) {
        if (client !== this.client)
            return;
        this.forget();
        this.isRunning = Boolean(owner);
        if (owner) {
            this.trouble = '';
            this.names.forEach(name => this.read(name));
        } else {
            this.readUnit();
        }
        this.changed();
    }

    /* Reads the state of the service in systemd, and repeats this until the agent runs. */
    async readUnit() {
        if (this.isReadingUnit)
            return;
        this.isReadingUnit = true;
        const systemd = this.cockpit.dbus(SYSTEMD, { bus: 'system' });
        try {
            const values = await Promise.all(UNIT_PROPERTIES.map(([kind, name]) => systemd.call(
                UNIT, 'org.freedesktop.DBus.Properties', 'Get', [`${SYSTEMD}.${kind}`, name])));
            this.unit = Object.fromEntries(UNIT_PROPERTIES.map(([, name], i) => [name, values[i][0].v]));
        } catch (error) {
            this.unit = null; // this bus has no systemd
        } finally {
            systemd.close();
            this.isReadingUnit = false;
        }
        if (this.isRunning === false) {
            this.changed();
            setTimeout(() => this.isRunning === false && this.readUnit(), RETRY_MSEC);
        }
    }

    /* Stores the progress of a long operation from changed properties. */
    follow(values) {
        for (const name of ['Operation', 'OperationPhase', 'OperationDone', 'OperationTotal'])
            if (values[name])
                this.operation[name] = values[name].v;
        this.changed();
    }

    /* Reads a document. If a call for it is pending, reads it again after the answer. */
    read(name) {
        if (!this.isRunning || !(this.names.includes(name)))
            return;
        if (this.reads[name]) {
            this.reads[name] = 'again';
            return;
        }
        const { client, reads } = this;
        reads[name] = 'reading';
        client.call(PATH, NAME, 'Describe', [name], { type: 's' })
            .then(([text]) => JSON.parse(text), () => null)
            .then(document => {
                if (reads !== this.reads)
                    return; // the answer of an earlier agent
                const again = reads[name] === 'again';
                delete reads[name];
                this.documents[name] = document;
                if (again)
                    this.read(name);
                else if (!document)
                    setTimeout(() => reads === this.reads && this.read(name), REREAD_MSEC);
                this.changed();
            });
    }

    /* Adds a document to the list and reads it. */
    add(name) {
        if (!this.names.includes(name))
            this.names.push(name);
        this.read(name);
    }

    /* Calls a method. Resolves to its answer, and rejects with the error of cockpit.dbus(). Each call opens a connection of its own,
     * because the user can gain or lose administrative access at any time. */
    async call(method, type = '', ...values) {
        const client = this.cockpit.dbus(NAME, { bus: 'system', superuser: 'try' });
        try {
            return await client.call(PATH, NAME, method, values, { type });
        } finally {
            client.close();
        }
    }
}
