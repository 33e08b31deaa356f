import { postgres } from '../contract/postgres-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// Each request of the thousand rewrites the queue of its key, so they do not all wait within a minute.
adverseSuite(postgres, [
  'of waiters is served in order, without those that gave up together',
  'of waiters makes a turn cost little more than a few of them do',
  'of waiters keeps its order when all connections break for a moment',
])
