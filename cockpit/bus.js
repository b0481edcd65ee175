// SPDX-License-Identifier: LGPL-2.1-or-later

/* The agent on the system bus: its documents, read with the rights of whoever logged in, and again when they change; and calls that
 * change something, with administrative access where there is one. Knows nothing of the page.
 *
 * Of a document at most one call is under way; what changes meanwhile is read after it. */

const NAME = 'org.computeagent.Agent1', PATH = '/org/computeagent/Agent1';
const RETRY_MSEC = 3000;
const SYSTEMD = 'org.freedesktop.systemd1', UNIT = '/org/freedesktop/systemd1/unit/compute_2dagent_2eservice';
const UNIT_PROPERTIES = [['Unit', 'ActiveState'], ['Service', 'Result'], ['Service', 'StatusText'], ['Service', 'ExecMainStatus']];
const REREAD_MSEC = 20000; // what could not be read: the agent tells when it can, but not who was refused for another reason

export class Bus {
    /* changed() is called after something did, never from within a call of this object. */
    constructor(cockpit, documents, changed) {
        this.cockpit = cockpit;
        this.names = documents;
        this.changed = changed;
        this.isRunning = null; // not known yet
        this.trouble = ''; // why the bus cannot be asked
        this.isReadingUnit = false;
        this.unit = null; // properties of the service in systemd, read while the agent does not run
        this.forget();
        this.open();
    }

    forget() {
        this.documents = {};
        this.reads = {}; // by document: 'reading', 'again'
        this.operation = {};
    }

    open() {
        const client = this.cockpit.dbus(NAME, { bus: 'system' });
        this.client = client;
        client.addEventListener('owner', (event, owner) => this.meet(client, owner));
        client.addEventListener('close', (event, options) => {
            if (client !== this.client)
                return;
            this.trouble = options.problem ?? '';
            this.meet(client, null);
            setTimeout(() => this.open(), RETRY_MSEC);
        });
        client.subscribe({ path: PATH, interface: NAME, member: 'DocumentChanged' }, (path, iface, signal, [document]) => this.read(document));
        client.subscribe({ path: PATH, interface: 'org.freedesktop.DBus.Properties', member: 'PropertiesChanged' },
                         (path, iface, signal, [, values]) => this.follow(values));
    }

    /* The agent came, went, or is another one: all is to be read anew. */
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

    /* Reads why the service does not run, again and again until it does. */
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
            this.unit = null; // there is no systemd on this bus
        } finally {
            systemd.close();
            this.isReadingUnit = false;
        }
        if (this.isRunning === false) {
            this.changed();
            setTimeout(() => this.isRunning === false && this.readUnit(), RETRY_MSEC);
        }
    }

    follow(values) {
        for (const name of ['Operation', 'OperationPhase', 'OperationDone', 'OperationTotal'])
            if (values[name])
                this.operation[name] = values[name].v;
        this.changed();
    }

    /* Also of a document that is read from now on. */
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
                    return; // of an agent that is gone
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

    add(name) {
        if (!this.names.includes(name))
            this.names.push(name);
        this.read(name);
    }

    /* Resolves to what the method answers, and rejects with what cockpit.dbus() says. Opened anew for each: administrative access comes
     * and goes. */
    async call(method, type = '', ...values) {
        const client = this.cockpit.dbus(NAME, { bus: 'system', superuser: 'try' });
        try {
            return await client.call(PATH, NAME, method, values, { type });
        } finally {
            client.close();
        }
    }
}
