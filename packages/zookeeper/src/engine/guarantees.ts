import type { Guarantees } from 'signalbox'

/** The guarantees of the ZooKeeper engine. */
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
