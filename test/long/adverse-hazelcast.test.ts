import { hazelcast } from '../contract/hazelcast-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// The client repeats the lock of a key by itself. A late one ends with its lease.
adverseSuite(hazelcast, [
  'a caller that waits: the lock that a late request has taken is soon free',
  'a try: the lock that a late request has taken is soon free',
])
