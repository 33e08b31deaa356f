import { contractSuite } from './suite.js'
import { zookeeper } from './zookeeper-fixture.js'

contractSuite(zookeeper)
