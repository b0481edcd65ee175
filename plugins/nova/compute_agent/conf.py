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
             'compute-agent does not answer. Used with '
             '``without_agent = nova``. It must be longer than an upgrade of '
             'the agent and a start of the host.'),
    cfg.IntOpt(
        'timeout',
        default=5,
        min=1,
        help='The limit in seconds for a reply of compute-agent.'),
]


def register(conf):
    conf.register_group(group)
    conf.register_opts(opts, group=group)
