"""A browser's part of a login, as a program: `python oidc_browser.py CA_FILE RECORD_FILE ADDRESS`.

Follows every redirect and writes one line of what it saw last. Started as any browser is: by its command.
"""

import json
import ssl
import sys
import urllib.error
import urllib.request

ca_file, record, address = sys.argv[1:4]
opener = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
)
try:
    page = opener.open(address, timeout=50)
except urllib.error.HTTPError as error:
    page = error
with open(record, "a", encoding="utf-8") as file:
    file.write(json.dumps({"status": page.status, "url": page.url, "page": page.read().decode()}) + "\n")
