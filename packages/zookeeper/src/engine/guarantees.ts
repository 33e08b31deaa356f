import type { Guarantees } from 'signalbox'

/** What the ZooKeeper engine promises. */
export const ZOOKEEPER_GUARANTEES: Guarantees = {
  engine: 'zookeeper',
  scope: 'network',
  deadHolder: 'session timeout',
  durability: 'power loss',
  weaknesses: [
    {
      promise: 'P2',
      how:
        'Tokens decrease if an ensemble loses its data, because its transaction IDs then start again from ' +
        'the beginning.',
    },
  ],
}
