# SPDX-License-Identifier: LGPL-2.1-or-later
"""The options of the plug-in in nova.conf."""

from oslo_config import cfg

group = cfg.OptGroup('compute_agent', title='compute-agent')

opts = [
    cfg.StrOpt(
        'without_agent',
        default='wait',
        choices=[
            ('wait', 'Leave the tree in Placement as it is.'),
            ('nova', 'Report what the driver of Nova finds, as without this '
                     'plug-in, after ``patience`` seconds.'),
        ],
        help='What to do while compute-agent does not answer, or has not '
             'published its tree yet.'),
    cfg.IntOpt(
        'patience',
        default=600,
        min=0,
        help='With ``without_agent = nova``: for how many seconds the tree is '
             'left alone while compute-agent is not there. It should be '
             'longer than an upgrade of the agent, or a start of the host, '
             'takes.'),
    cfg.IntOpt(
        'timeout',
        default=5,
        min=1,
        help='For how many seconds to wait for an answer of compute-agent.'),
]


def register(conf):
    conf.register_group(group)
    conf.register_opts(opts, group=group)
