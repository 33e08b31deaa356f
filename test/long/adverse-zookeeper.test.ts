import { zookeeper } from '../contract/zookeeper-fixture.js'
import { thaw } from '../../packages/conformance/src/thaw.js'
import { adverseSuite, contractParts } from '../contract/suite.js'

adverseSuite(zookeeper)
contractParts(zookeeper, thaw)
