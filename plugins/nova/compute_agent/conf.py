# SPDX-License-Identifier: LGPL-2.1-or-later
"""The options of the plug-in in nova.conf."""

from oslo_config import cfg

group = cfg.OptGroup('compute_agent', title='compute-agent')

opts = [
    cfg.StrOpt(
        'without_agent',
        default='wait',
        choices=[
            ('wait', 'Do not change the tree in Placement.'),
            ('nova', 'After ``patience`` seconds, report the resources that '
                     'the driver of Nova finds, as without this plug-in.'),
        ],
        help='The behaviour while compute-agent does not answer, or has not '
             'published its tree yet.'),
    cfg.IntOpt(
        'patience',
        default=600,
        min=0,
        help='The time in seconds for which the tree stays unchanged while '
             'compute-agent does not answer, from the first unanswered '
             'question of nova-compute. Used with ``without_agent = nova``. It '
             'must be longer than an upgrade of the agent and a start of the '
             'host.'),
    cfg.IntOpt(
        'timeout',
        default=5,
        min=1,
        help='The limit in seconds for a reply of compute-agent.'),
    cfg.ListOpt(
        'devices',
        default=[],
        help='Resource classes whose devices compute-agent chooses. A server '
             'whose flavor requests one of them gets the devices of its claim. '
             'No class of ``[pci] device_spec``, ``[pci] alias`` or '
             '``[devices]`` can be in the list. Empty: none.'),
    cfg.IntOpt(
        'device_timeout',
        default=60,
        min=1,
        help='The time in seconds for which a start of a server waits for its '
             'devices while compute-agent or Placement does not answer. After '
             'it the start fails.'),
]


def register(conf):
    conf.register_group(group)
    conf.register_opts(opts, group=group)
