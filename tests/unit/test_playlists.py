"""What is read out of playlist text: segments, ranges, keys, renditions, titles, and bounds on all of them."""

import pytest

from activities.adapters.keys import choose_key, decrypt, protection
from activities.adapters.playlist_tags import parse_playlist
from activities.adapters.renditions import candidates, is_master
from activities.adapters.snapshots import MAX_SEGMENTS, snapshot
from activities.adapters.sniff import found
from activities.payloads import PlaylistSnapshot
from activities.ports import SourceFault, SourceRefused

URL = "https://cdn.example/live/a/list.m3u8?token=1"


def read(text: str, url: str = URL) -> PlaylistSnapshot:
    return snapshot(parse_playlist(text), url)


def media(*lines: str, sequence: int = 0) -> str:
    return "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:4", f"#EXT-X-MEDIA-SEQUENCE:{sequence}", *lines])


def test_a_list_without_segments_may_be_ended() -> None:
    got = read(media("#EXT-X-ENDLIST"))
    assert (got.segments, got.ended) == ([], True)
    assert not read(media()).ended


def test_segments_are_numbered_from_the_media_sequence_and_keep_their_durations() -> None:
    got = read(media("#EXTINF:4.004,", "a.ts", "#EXTINF:3.5,title", "b.ts", sequence=174))
    assert [(s.sequence, s.duration_s) for s in got.segments] == [(174, 4.004), (175, 3.5)]
    assert (got.target_duration_s, got.media_url, got.ended) == (4.0, URL, False)


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ("s1.ts", "https://cdn.example/live/a/s1.ts"),
        ("/root/s1.ts", "https://cdn.example/root/s1.ts"),
        ("../b/s1.ts?x=1&y=a/b", "https://cdn.example/live/b/s1.ts?x=1&y=a/b"),
        ("?seq=7", "https://cdn.example/live/a/list.m3u8?seq=7"),
        ("//other.example/s%201.ts", "https://other.example/s%201.ts"),
        ("http://other.example/s1.ts", "http://other.example/s1.ts"),
    ],
)
def test_every_form_of_reference_is_resolved_against_the_final_address(reference: str, address: str) -> None:
    text = media(
        f'#EXT-X-MAP:URI="{reference}"', f'#EXT-X-KEY:METHOD=AES-128,URI="{reference}"', "#EXTINF:4,", reference
    )
    segment = read(text).segments[0]
    assert segment.url == segment.map_url == segment.key_url == address


def test_byte_ranges_without_offset_go_on_where_the_same_file_ended() -> None:
    got = read(
        media(
            '#EXT-X-MAP:URI="all.mp4",BYTERANGE="700@0"',
            "#EXTINF:4,", "#EXT-X-BYTERANGE:100@700", "all.mp4",
            "#EXTINF:4,", "#EXT-X-BYTERANGE:50", "all.mp4",
            "#EXTINF:4,", "#EXT-X-BYTERANGE:9", "other.mp4",
        )
    )  # fmt: skip
    assert [s.byte_range for s in got.segments] == [(100, 700), (50, 800), (9, 0)]
    assert got.segments[0].map_range == (700, 0)


def test_each_part_has_the_init_section_in_force() -> None:
    got = read(
        media(
            '#EXT-X-MAP:URI="one.mp4"', "#EXTINF:4,", "1.m4s",
            "#EXT-X-DISCONTINUITY", '#EXT-X-MAP:URI="two.mp4"', "#EXTINF:4,", "2.m4s", "#EXTINF:4,", "3.m4s",
        )
    )  # fmt: skip
    assert [(s.map_url or "").rpartition("/")[2] for s in got.segments] == ["one.mp4", "two.mp4", "two.mp4"]
    assert [s.discontinuity for s in got.segments] == [False, True, False]


def test_keys_rotate_and_end_with_none() -> None:
    got = read(
        media(
            "#EXTINF:4,", "0.ts",
            '#EXT-X-KEY:METHOD=AES-128,URI="k1"', "#EXTINF:4,", "1.ts",
            '#EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x0A', "#EXTINF:4,", "2.ts",
            "#EXT-X-KEY:METHOD=NONE", "#EXTINF:4,", "3.ts",
            sequence=255,
        )
    )  # fmt: skip
    assert [(s.key_url or "").rpartition("/")[2] for s in got.segments] == ["", "k1", "k2", ""]
    assert [s.key_iv for s in got.segments] == [None, f"{256:032x}", f"{10:032x}", None]


def test_a_key_we_can_use_is_taken_from_among_those_of_other_formats() -> None:
    keys = [
        '#EXT-X-KEY:METHOD=AES-128,URI="plain"',
        '#EXT-X-KEY:METHOD=AES-128,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"',
    ]
    for order in (keys, keys[::-1]):
        assert read(media(*order, "#EXTINF:4,", "1.ts")).segments[0].key_url == "https://cdn.example/live/a/plain"


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ('METHOD=SAMPLE-AES,URI="k"', "SAMPLE-AES"),
        ('METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"', "FairPlay"),
        ('METHOD=SAMPLE-AES-CTR,URI="d",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"', "Widevine"),
        ('METHOD=SAMPLE-AES-CTR,URI="d",KEYFORMAT="com.microsoft.playready"', "PlayReady"),
        ('METHOD=AES-256-GCM,URI="k"', "AES-256-GCM"),
        ('METHOD=AES-128,URI="k",KEYFORMAT="org.example.own"', r"org\.example\.own"),
        ("METHOD=AES-128", "AES-128"),
        ("URI=x", "no method"),
    ],
)
def test_protection_that_cannot_be_opened_is_refused_by_name(tag: str, name: str) -> None:
    with pytest.raises(SourceRefused, match=name):
        read(media(f"#EXT-X-KEY:{tag}", "#EXTINF:4,", "1.ts"))


@pytest.mark.parametrize("vector", ["0x" + "f" * 33, "seven", "-1"])
def test_a_vector_that_is_no_number_of_128_bits_is_refused(vector: str) -> None:
    with pytest.raises(SourceRefused, match="vector"):
        choose_key([{"method": "AES-128", "uri": "k", "iv": vector}], 1)


def test_a_wrong_key_or_an_incomplete_segment_is_told_apart_from_a_key_of_the_wrong_length() -> None:
    vector = f"{0:032x}"
    with pytest.raises(SourceRefused, match="8 bytes; AES-128 takes 16"):
        decrypt(bytes(16), bytes(8), vector)
    with pytest.raises(SourceFault, match="incomplete"):
        decrypt(bytes(15), bytes(16), vector)
    with pytest.raises(SourceFault, match="could not be decrypted"):
        decrypt(bytes(32), bytes(16), vector)


def test_unknown_protections_are_named_as_they_name_themselves() -> None:
    assert protection({"method": "X", "keyformat": "y"}) == "X, y"


def test_gaps_and_unfinished_parts_leave_their_number_free() -> None:
    got = read(
        media(
            "#EXTINF:4,", "1.ts", "#EXT-X-DISCONTINUITY", "#EXT-X-GAP", "#EXTINF:4,", "2.ts", "#EXTINF:4,", "3.ts",
            '#EXT-X-PART:DURATION=0.5,URI="4.0.ts"', '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="4.1.ts"',
            sequence=7,
        )
    )  # fmt: skip
    assert [(s.sequence, s.discontinuity) for s in got.segments] == [(7, False), (9, True)]


@pytest.mark.parametrize(
    "line",
    [
        "#EXT-X-TARGETDURATION:4.5",
        "#EXT-X-TARGETDURATION:nan",
        "#EXT-X-PROGRAM-DATE-TIME:yesterday",
        "#EXT-X-DATERANGE:ID",
        "#EXT-X-CUE-OUT",
        "#EXT-X-CUE-OUT-CONT:x",
        "#EXT-OATCLS-SCTE35:",
        "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=often",
        "#EXT-X-START:TIME-OFFSET=x",
        "#EXT-X-UNHEARD-OF:1",
        "# a remark",
        "",
    ],
)
def test_tags_that_do_not_matter_may_be_broken(line: str) -> None:
    assert len(read(media(line, "#EXTINF:4,", "1.ts")).segments) == 1


def test_durations_are_read_as_far_as_they_are_numbers_and_bounded() -> None:
    texts = ["4.004", '6 tvg-id="x"', "", "nan", "-5", "inf", "9" * 400, "1e9", "100000"]
    lines = [line for text in texts for line in (f"#EXTINF:{text},", "s.ts")]
    assert [s.duration_s for s in read(media(*lines)).segments] == [4.004, 6, 0, 0, 0, 0, 0, 1, 600]


@pytest.mark.parametrize(
    "tag", ["#EXT-X-MEDIA-SEQUENCE:x", "#EXT-X-MEDIA-SEQUENCE:-4", "#EXT-X-MEDIA-SEQUENCE:" + "9" * 30]
)
def test_a_sequence_that_is_no_number_is_a_fault_that_may_pass(tag: str) -> None:
    with pytest.raises(SourceFault):
        read(media(tag, "#EXTINF:4,", "1.ts"))


@pytest.mark.parametrize("text", ["0@5", "x", "5@-1", "9" * 30, "5@" + "9" * 30])
def test_a_byte_range_that_is_none_is_a_fault(text: str) -> None:
    with pytest.raises(SourceFault, match="byte range"):
        read(media("#EXTINF:4,", f"#EXT-X-BYTERANGE:{text}", "1.ts"))


def test_a_list_of_too_many_segments_is_refused() -> None:
    with pytest.raises(SourceRefused, match=str(MAX_SEGMENTS)):
        read(media(*["#EXTINF:1,\ns.ts"] * (MAX_SEGMENTS + 1)))


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    got = read("\ufeff" + media("#EXTINF:4,", "1.ts", "#EXT-X-ENDLIST").replace("\n", "\r\n"))
    assert got.ended
    assert got.segments[0].url.endswith("/1.ts")


def test_the_title_comes_from_the_list_on_one_line() -> None:
    assert read(media("#PLAYLIST:Night\tTalk \u2028 (live)")).title == "Night Talk (live)"
    assert read(media('#EXT-X-SESSION-DATA:DATA-ID="com.example.title",VALUE="架构夜谈"')).title == "架构夜谈"
    assert read(media("#EXTINF:4,a title", "1.ts")).title is None


# ---- master playlists ----


def choose(*lines: str) -> list[str]:
    data = parse_playlist("\n".join(["#EXTM3U", *lines]))
    assert is_master(data)
    return [url.removeprefix("https://cdn.example/live/a/") for url in candidates(data, URL)]


GROUP = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n"'


def test_an_audio_group_beside_video_only_variants_is_used() -> None:
    got = choose(
        f'{GROUP},DEFAULT=YES,URI="audio.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=2000,CODECS="avc1.64001f",AUDIO="a"', "hi.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.42001f",AUDIO="a"', "lo.m3u8",
    )  # fmt: skip
    assert got == ["audio.m3u8", "lo.m3u8", "hi.m3u8"]


def test_the_default_rendition_goes_before_others_and_before_descriptions_of_the_picture() -> None:
    got = choose(
        f'{GROUP},AUTOSELECT=YES,CHARACTERISTICS="public.accessibility.describes-video",DEFAULT=YES,URI="ad.m3u8"',
        f'{GROUP},AUTOSELECT=YES,URI="other.m3u8"',
        f'{GROUP},DEFAULT=YES,AUTOSELECT=YES,URI="main.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="a"', "v.m3u8",
    )  # fmt: skip
    assert got == ["main.m3u8", "v.m3u8"]


def test_a_default_rendition_inside_the_variants_leads_to_the_lightest_of_these() -> None:
    got = choose(
        f"{GROUP},DEFAULT=YES",
        f'{GROUP},URI="commentary.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=2000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a"', "hi.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a"', "lo.m3u8",
    )  # fmt: skip
    assert got == ["lo.m3u8", "hi.m3u8"]


def test_audio_only_variants_go_before_lighter_ones_with_a_picture_and_those_before_silent_ones() -> None:
    got = choose(
        '#EXT-X-STREAM-INF:BANDWIDTH=100,CODECS="avc1.64001f"', "silent.m3u8",
        "#EXT-X-STREAM-INF:BANDWIDTH=300", "unknown.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=900,CODECS="mp4a.40.5"', "audio.m3u8",
    )  # fmt: skip
    assert got == ["audio.m3u8", "unknown.m3u8", "silent.m3u8"]


def test_a_master_of_renditions_alone_is_a_master() -> None:
    assert choose(f'{GROUP},URI="audio.m3u8"') == ["audio.m3u8"]


# ---- what is no playlist ----


@pytest.mark.parametrize(
    ("head", "content_type", "name"),
    [
        (b"\n <!DOCTYPE html><html>", "", "a web page (HTML)"),
        (b"<?xml version='1.0'?><MPD xmlns=", "", "a DASH manifest"),
        (b"<?xml version='1.0'?><SmoothStreamingMedia", "", "a Smooth Streaming manifest"),
        (b"<?xml version='1.0'?><rss>", "", "an XML document"),
        (b'{"error": 1}', "", "a JSON document"),
        (b"ID3\x04", "", "an MP3 file"),
        (b"\xff\xfb\x90", "", "an MP3 file"),
        (b"\xff\xf1\x50", "", "an AAC file"),
        (b"\x00\x00\x00\x1cftypM4A ", "", "an MP4 file"),
        (b"G" + bytes(187) + b"G", "", "an MPEG transport stream"),
        (b"OggS", "", "an Ogg file"),
        (b"[playlist]\nFile1=", "", "a PLS playlist"),
        (b"\x00\x01", "audio/x-rare; a=b", "a media file (audio/x-rare)"),
        (b"hello", "text/plain", "something else (text/plain)"),
        (b"hello", "", "something else"),
    ],
)
def test_what_is_no_playlist_is_named(head: bytes, content_type: str, name: str) -> None:
    assert found(head, content_type) == name
