import { zookeeper } from '../contract/zookeeper-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(zookeeper)
