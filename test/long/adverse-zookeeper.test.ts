import { zookeeper } from '../contract/zookeeper-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// The server deletes empty containers more slowly than these boxes create them.
adverseSuite(zookeeper, ['of short-lived boxes leave no records'])
